import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { ProcessLog } from './process-log.ts';

test('lines are dropped while the disk is full, and counted in a later line', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-process-log-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'svc-process-log', folder]);
  t.after(() => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true });
  });
  const file = openSync(join(folder, 'log'), 'a');
  t.after(() => closeSync(file));
  const logger = pino({ base: null }, new ProcessLog(file));
  logger.info('before');
  assert.throws(() => writeFileSync(join(folder, 'filler'), Buffer.alloc(65_536)), { code: 'ENOSPC' });
  // The page that the log has begun takes some more; the line on its border is torn.
  const during = 200;
  for (let count = 0; count < during; count++) logger.info({ count }, 'x'.repeat(100));
  rmSync(join(folder, 'filler'));
  logger.info('after');
  logger.info('and on');

  const written = readFileSync(join(folder, 'log'), 'utf8').trimEnd().split('\n');
  const lines = written.flatMap((text) => {
    try {
      return [JSON.parse(text) as { msg: string; dropped?: number; count?: number }];
    } catch {
      return [];
    }
  });
  assert.ok(written.length - lines.length <= 1, 'only the line on the border is torn');
  const kept = lines.filter(({ count }) => count !== undefined).length;
  const [missing, after, more] = lines.slice(-3);
  assert.equal(missing?.dropped, during - kept);
  assert.match(missing.msg, /^\d+ lines of this log could not be written and are missing \(ENOSPC\)$/);
  assert.deepEqual([after?.msg, more?.msg], ['after', 'and on']);
});

test('a reader that is gone does not end the process', async () => {
  const script = `
    const { ProcessLog } = await import(${JSON.stringify(join(import.meta.dirname, 'process-log.ts'))});
    const log = new ProcessLog(1);
    process.stdin.once('data', () => { log.write('unread\\n'); process.exit(7); });
    log.write('ready\\n');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.stdout.destroy();
  child.stdin.write('go\n');
  assert.deepEqual(await exited, [7, null]);
});

test('text of callers is escaped in the log, and the same to programs', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-process-log-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = openSync(join(folder, 'log'), 'a');
  t.after(() => closeSync(file));
  const name = 'x\n\u001B[2J\u009B8m\u007F\u202E\u2028';
  pino({ base: null }, new ProcessLog(file)).info({ name }, name);
  const written = readFileSync(join(folder, 'log'), 'utf8');
  assert.match(written, /^[\x20-\x7e]+\n$/);
  const { name: read, msg } = JSON.parse(written) as { name: string; msg: string };
  assert.deepEqual([read, msg], [name, name]);
});
