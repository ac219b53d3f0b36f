import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { test, type TestContext } from 'node:test';
import type { LogEntry, ReadLogs } from '@svc/contract/orchestrator';
import fc from 'fast-check';
import { decodeCursor } from './log-cursor.ts';
import { completeLength } from './log-line.ts';
import { SandboxLog } from './sandbox-log.ts';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-log-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function texts(log: SandboxLog, options: ReadLogs = {}): Promise<string[]> {
  return (await entries(log, options)).map((entry) => entry.text);
}

async function entries(log: SandboxLog, options: ReadLogs = {}): Promise<LogEntry[]> {
  return await Array.fromAsync(log.read(options, AbortSignal.timeout(100_000)));
}

test('output and system entries come back in order, each source only on request', async (t) => {
  const log = await SandboxLog.open(folder(t));
  log.system('started');
  log.output('main', 'stdout', Buffer.from('one\n'), 4);
  log.output('main', 'stderr', Buffer.from('two\n'), 4);
  assert.deepEqual(await texts(log), ['one\n', 'two\n']);
  assert.deepEqual(await texts(log, { sources: ['system'] }), ['started']);
  assert.deepEqual(await texts(log, { tail: 1 }), ['two\n']);
});

test('lines are dropped while the disk is full, a later line reports them, and other lines stay intact', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'svc-log-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'svc-log-test', path]);
  t.after(() => {
    execFileSync('umount', ['--lazy', path]);
    rmSync(path, { recursive: true });
  });
  const filler = join(path, 'filler');
  writeFileSync(filler, Buffer.alloc(128 * 1024));
  const log = await SandboxLog.open(join(path, 'log'), { maxFileBytes: 48 * 1024 });
  const line = Buffer.alloc(1000, 'x');
  for (let i = 1; i <= 300; i++) log.output('main', 'stdout', line, i * line.length);
  rmSync(filler);
  log.output('main', 'stdout', Buffer.from('after'), 300_005);
  const all = await entries(log, { sources: ['stdout', 'system'] });
  assert.deepEqual(
    all.slice(-2).map(({ source, text }) => `${source}: ${text}`),
    [
      `system: lines are missing here: ${300 - (all.length - 2)} could not be written, the disk of the host was full`,
      'stdout: after',
    ],
  );
  assert.ok(all.slice(0, -2).every(({ text }) => text === line.toString()));
  assert.ok(all.length > 50, 'what fitted is there');
});

test('a cursor continues exactly behind its entry, also after the log was opened again', async (t) => {
  const path = folder(t);
  const log = await SandboxLog.open(path);
  for (let i = 1; i <= 5; i++) log.output('main', 'stdout', Buffer.from(`${i}`), i);
  const cursor = (await entries(log))[2]?.cursor ?? '';
  log.close();
  const again = await SandboxLog.open(path);
  again.output('main', 'stdout', Buffer.from('6'), 6);
  assert.deepEqual(await texts(again, { cursor }), ['4', '5', '6']);
});

test('rotation keeps three files, and a reader that fell behind gets the gap', async (t) => {
  const path = folder(t);
  const log = await SandboxLog.open(path, { maxFileBytes: 1000 });
  log.output('main', 'stdout', Buffer.from('first'), 5);
  const cursor = (await entries(log))[0]?.cursor ?? '';
  for (let i = 0; i < 100; i++) log.output('main', 'stdout', Buffer.from(`line ${i}`), i);
  assert.equal(readdirSync(path).length, 3);
  const [mark] = await entries(log, { cursor, sources: ['stdout', 'system'] });
  assert.equal(mark?.text, 'older output was dropped by rotation');
  assert.equal((await texts(log)).at(-1), 'line 99');
});

test('following yields what comes later and ends when the log is closed', async (t) => {
  const log = await SandboxLog.open(folder(t));
  const seen: string[] = [];
  const reading = (async () => {
    for await (const entry of log.read({ follow: true }, AbortSignal.timeout(100_000))) {
      seen.push(entry.text);
      if (entry.text === 'b') log.close();
    }
  })();
  log.output('main', 'stdout', Buffer.from('a'), 1);
  setImmediate(() => log.output('main', 'stdout', Buffer.from('b'), 2));
  await reading;
  assert.deepEqual(seen, ['a', 'b']);
});

test('a line that a crash cut off is removed, and the offsets before it are known', async (t) => {
  const path = folder(t);
  const log = await SandboxLog.open(path);
  log.output('main', 'stdout', Buffer.from('whole'), 5);
  log.output('main', 'stderr', Buffer.from('err'), 3);
  log.close();
  appendFileSync(join(path, 'log-1.jsonl'), '{"t":"2026');
  const again = await SandboxLog.open(path);
  assert.deepEqual(await again.offsetsOf('main'), { stdout: 5, stderr: 3 });
  again.output('main', 'stdout', Buffer.from('!'), 6);
  assert.deepEqual(await texts(again), ['whole', 'err', '!']);
});

test('the offsets of a stream outlive the lines that rotation took away', async (t) => {
  const path = folder(t);
  const log = await SandboxLog.open(path, { maxFileBytes: 1000 });
  log.output('main', 'stderr', Buffer.from('err'), 3);
  for (let i = 1; i <= 100; i++) log.output('main', 'stdout', Buffer.from(`line ${i}`), i);
  log.close();
  const again = await SandboxLog.open(path, { maxFileBytes: 1000 });
  assert.deepEqual(await again.offsetsOf('main'), { stdout: 100, stderr: 3 });
  assert.deepEqual(await again.offsetsOf('other'), { stdout: 0, stderr: 0 });
});

test('a reader who stops reading costs no memory while the log grows', async (t) => {
  const log = await SandboxLog.open(folder(t), { maxFileBytes: 10_000 });
  const stop = new AbortController();
  const reading = log.read({ follow: true }, stop.signal);
  log.output('main', 'stdout', Buffer.from('first'), 5);
  assert.equal((await reading.next()).value?.text, 'first');
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 50_000; i++) log.output('main', 'stdout', Buffer.from('x'), i);
  gc();
  const grownBytes = process.memoryUsage().heapUsed - before;
  assert.ok(grownBytes < 1024 * 1024, `${grownBytes} bytes are held for a reader who reads nothing`);
  stop.abort();
  assert.equal((await reading.next()).done, true);
});

test('a log of many pieces is read whole and in order, lines longer than a piece included', async (t) => {
  const log = await SandboxLog.open(folder(t));
  const long = 'y'.repeat(700_000);
  for (let i = 0; i < 300; i++) log.output('main', 'stdout', Buffer.from(i === 150 ? long : `${i}`), i);
  const read = await texts(log);
  assert.deepEqual(
    read,
    Array.from({ length: 300 }, (_, i) => (i === 150 ? long : `${i}`)),
  );
  assert.deepEqual(await texts(log, { tail: 2 }), ['298', '299']);
  assert.equal((await texts(log, { tail: 1000 })).length, 300);
});

test('bytes that are not text do not break the log', async (t) => {
  const log = await SandboxLog.open(folder(t));
  log.output('main', 'stdout', Buffer.from([0xff, 0x00, 0x41]), 3);
  assert.deepEqual(await texts(log), ['\ufffd\0A']);
});

test('text cut at any byte is held back to a character border and never more than three bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, cut) => {
      const bytes = Buffer.from(text);
      const part = bytes.subarray(0, cut % (bytes.length + 1));
      const complete = completeLength(part);
      assert.ok(part.length - complete <= 3);
      assert.equal(Buffer.from(part.subarray(0, complete).toString()).compare(part.subarray(0, complete)), 0);
    }),
  );
});

test('a cursor from elsewhere is refused by name', () => {
  for (const cursor of ['12', 'abc', 'AQ==', ''])
    assert.throws(() => decodeCursor(cursor), { code: 'invalid_cursor' });
  assert.equal(decodeCursor('AA=='), undefined);
});
