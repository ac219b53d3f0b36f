import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { endRecordedProcess, findRecordedProcess, recordProcess } from './recorded-process.ts';

async function recordedChild(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-recorded-'));
  t.after(() => rm(folder, { recursive: true }));
  const child = spawn('sleep', ['60']);
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  const record = join(folder, 'child.json');
  await recordProcess(record, child.pid, 53);
  return { child, record };
}

test('a recorded process is ended once, and again is fine', async (t) => {
  const { child, record } = await recordedChild(t);
  assert.equal((await findRecordedProcess(record))?.port, 53);
  const exited = once(child, 'exit');
  await endRecordedProcess(record);
  assert.deepEqual(await exited, [null, 'SIGKILL']);
  await endRecordedProcess(record);
});

test('a process that merely has the pid of the recorded one is left alone', async (t) => {
  const { child, record } = await recordedChild(t);
  const recorded = JSON.parse(await readFile(record, 'utf8')) as { pid: number; startTime: string };
  await writeFile(record, JSON.stringify({ ...recorded, startTime: '1' }));
  await endRecordedProcess(record);
  assert.equal(child.exitCode ?? child.signalCode, null);
  process.kill(recorded.pid, 0);
});

test('a record that is cut short or names no process is ignored', async (t) => {
  const { record } = await recordedChild(t);
  for (const text of [
    '',
    '{"pid":',
    '{"pid":2,"startTime":"1"}',
    '{"pid":1,"startTime":"1","port":53}',
    '{"pid":-1,"startTime":"1","port":53}',
    '[]',
    'null',
  ]) {
    await writeFile(record, text);
    await endRecordedProcess(record);
  }
});
