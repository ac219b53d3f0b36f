import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';

const fixture = (path: string) => JSON.stringify(join(import.meta.dirname, path));
const TIDY_TIMEOUT_MS = 100_000;

/** Begins with a server that has a sandbox; what comes then is the test's. */
const SET_UP = `
  import { renameSync, writeFileSync } from 'node:fs';
  import { after, before, test } from 'node:test';
  import { TestServer } from ${fixture('../e2e/start-server.ts')};
  import { startSandbox } from ${fixture('sandbox-fixture.ts')};
  before(async () => {
    const server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
    await startSandbox(server.engine, 'container');
    const { folder, runFolder } = server.engine;
    writeFileSync('started.new', JSON.stringify([folder, runFolder]));
    renameSync('started.new', 'started');`;

/** A test file in a folder of its own, run by node alone. */
async function startFile(t: TestContext, body: string) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-warden-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'one.test.ts'), body);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ['one.test.ts'], { cwd: folder, env, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const started = (): string[] => JSON.parse(readFileSync(join(folder, 'started'), 'utf8'));
  return { child, ended, started, hasStarted: () => existsSync(join(folder, 'started')) };
}

/** Folders, mounts, and processes that have one of them as an argument. */
function leftOf(folders: readonly string[]): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const commands = readdirSync('/proc').flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'utf8')] : [];
    } catch {
      return [];
    }
  });
  const isTheirs = (line: string) => folders.some((folder) => line.includes(folder));
  return [...folders.filter((folder) => existsSync(folder)), ...[...mounts, ...commands].filter(isTheirs)];
}

async function assertNothingLeft(folders: readonly string[]): Promise<void> {
  await waitUntil(() => leftOf(folders).length === 0, {
    timeoutMs: TIDY_TIMEOUT_MS,
    what: 'server, engine, sandbox and folders are gone',
  }).catch(() => undefined);
  assert.deepEqual(leftOf(folders), []);
}

test('a file whose set-up fails exits, and its server, engine and sandbox with it', async (t) => {
  const file = await startFile(
    t,
    `${SET_UP} throw new Error('on purpose'); });
     let server;
     after(() => server.destroy());
     test('is not reached', () => undefined);`,
  );
  assert.deepEqual(await file.ended, [1, null]);
  await assertNothingLeft(file.started());
});

test('a file that is killed takes its server, engine and sandbox along', async (t) => {
  const file = await startFile(
    t,
    `${SET_UP} await new Promise((resolve) => setTimeout(resolve, 600_000)); });
     test('is not reached', () => undefined);`,
  );
  await waitUntil(file.hasStarted, { timeoutMs: TIDY_TIMEOUT_MS, what: 'the set-up is where it stays' });
  assert.notEqual(leftOf(file.started()).length, 0);
  file.child.kill('SIGKILL');
  await file.ended;
  await assertNothingLeft(file.started());
});
