import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { RUNTIMES } from '../runtime/runtimes.ts';

const MAIN = join(import.meta.dirname, 'main.ts');

test('an engine that is stopped while it tries its runtimes leaves none of their processes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-stop-early-'));
  await chmod(folder, 0o711);
  const runFolder = join('/run/svc', createHash('sha256').update(folder).digest('hex').slice(0, 8));
  const child = spawn('tini', ['-s', '--', process.execPath, MAIN, '--path', folder], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await promisify(execFile)('umount', ['-R', '-l', runFolder]).catch(() => undefined);
    await rm(runFolder, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  });
  const bundles = () => RUNTIMES.flatMap(({ name }) => entriesOf(join(runFolder, name, 'bundles')));
  const isOver = () => existsSync(join(folder, 'probes.json'));
  await waitUntil(() => bundles().length > 0 || isOver());
  child.kill('SIGTERM');
  const [code] = (await exited) as [number | null];
  assert.equal(code, 0);
  assert.deepEqual(bundles(), []);
  // Killed processes take a moment to exit.
  await waitUntil(() => commandsWith(runFolder).length === 0);
});

function entriesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function commandsWith(word: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return ''; // It has ended.
      }
    })
    .filter((command) => command.includes(word));
}
