import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { engineRecord } from '../testing/engine-record.ts';
import { RecordFiles } from './record-files.ts';

const NEVER_MS = 2 ** 30;

function unexpected(error: unknown): void {
  assert.ifError(error);
}

/** A record of a sandbox that waits in the pool, and where it is. */
async function waiting(t: TestContext, replaceMs: number) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-records-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const records = new RecordFiles(folder, { replaceMs });
  const record = engineRecord();
  await records.write(record, { durable: false });
  const ids = async () => (await records.readAll(() => assert.fail('broken'))).map(({ id }) => id);
  return { records, record, ids, file: join(folder, record.handle, 'record.json') };
}

test('the record that was appended last counts', async (t) => {
  const { records, record, ids } = await waiting(t, NEVER_MS);
  records.append({ ...record, id: 'one' }, unexpected);
  records.append({ ...record, id: 'two' }, unexpected);
  assert.deepEqual(await ids(), ['two']);
  await records.write({ ...record, id: 'three' }, { durable: true });
  assert.deepEqual(await ids(), ['three']);
});

test('a record that was cut off while it was appended is as if it had never been', async (t) => {
  const { records, record, ids, file } = await waiting(t, NEVER_MS);
  const line = JSON.stringify({ ...record, id: 'one' });
  for (const torn of ['\n', `\n${line.slice(0, 20)}`, line.slice(20, -1)]) {
    appendFileSync(file, torn);
    assert.deepEqual(await ids(), [null]);
  }
  records.append({ ...record, id: 'two' }, unexpected);
  assert.deepEqual(await ids(), ['two']);
});

test('a file with an appended record is soon replaced by one that holds nothing else', async (t) => {
  const { records, record, file } = await waiting(t, 1);
  const owned = { ...record, id: 'one' };
  records.append(owned, unexpected);
  await waitUntil(() => readFileSync(file, 'utf8') === JSON.stringify(owned), 'the file is replaced');
});

test('a record that is removed or written meanwhile is not replaced by an older one', async (t) => {
  const { records, record, ids } = await waiting(t, 1);
  records.append({ ...record, id: 'one' }, unexpected);
  await records.write({ ...record, id: 'two' }, { durable: false });
  const other = engineRecord();
  await records.write(other, { durable: false });
  records.append({ ...other, id: 'gone' }, unexpected);
  records.remove(other.handle);
  const third = engineRecord();
  await records.write(third, { durable: false });
  records.append({ ...third, id: 'three' }, unexpected);
  // Timers fire in order: when the third has been replaced, the others would have been.
  const path = join(records.folderOf(third.handle), 'record.json');
  await waitUntil(() => !readFileSync(path, 'utf8').includes('\n'), 'the third is replaced');
  assert.deepEqual(new Set(await ids()), new Set(['two', 'three']));
});
