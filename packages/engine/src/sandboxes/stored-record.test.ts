import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { EventLog } from '../events/event-log.ts';
import { engineRecord } from '../testing/engine-record.ts';
import { StoredRecord } from './stored-record.ts';
import { RecordFiles } from './record-files.ts';

const NEVER_MS = 2 ** 30;

async function createRecord(folder: string) {
  const records = new RecordFiles(folder, { replaceMs: NEVER_MS });
  const record = engineRecord({ id: 'one', state: 'created' });
  await records.write(record, { durable: false });
  const stored = new StoredRecord(
    { records, events: new EventLog(), logger: pino({ enabled: false }) },
    record,
  );
  const states = async () => (await records.readAll(() => assert.fail('broken'))).map(({ state }) => state);
  return { stored, states, folder: records.folderOf(record.handle) };
}

test('each state is appended as a line, and the last line is the record', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-record-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { stored, states, folder } = await createRecord(base);
  t.after(() => stored.journal.close());
  for (const state of ['starting', 'running', 'stopping', 'stopped'] as const) {
    await stored.move(state, {});
    assert.deepEqual(await states(), [state]);
    assert.equal(stored.value.state, state);
  }
  const lines = readFileSync(join(folder, 'record.json'), 'utf8').split('\n').filter(Boolean);
  assert.equal(lines.length, 5);
});

test('a record whose folder was removed is written anew', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-record-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { stored, states, folder } = await createRecord(base);
  t.after(() => stored.journal.close());
  rmSync(folder, { recursive: true });
  await stored.move('starting', {});
  assert.deepEqual(await states(), ['starting']);
});

test('a change of state after the removal writes no record', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-record-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { stored, states, folder } = await createRecord(base);
  await stored.move('starting', {});
  stored.remove();
  await stored.move('failed', {});
  assert.equal(stored.value.state, 'failed');
  assert.deepEqual([await states(), existsSync(folder)], [[], false]);
});

test('a full disk refuses a start and does not hold up an end, which is saved when there is space', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-record-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'none', base]);
  const { stored, states } = await createRecord(base);
  t.after(() => {
    stored.journal.close();
    execFileSync('umount', [base]);
    rmSync(base, { recursive: true });
  });
  await stored.move('starting', {});
  await stored.move('running', {});
  const filler = join(base, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(256 * 1024)), { code: 'ENOSPC' });
  // More than the rest of the file's last block.
  const long = { createdAt: 'x'.repeat(8192) };
  await stored.move('stopping', long);
  await stored.move('stopped', long);
  assert.equal(stored.isUnsaved, true);
  assert.equal(stored.value.state, 'stopped');
  assert.deepEqual(await states(), ['running']);
  await assert.rejects(stored.move('starting', {}), { code: 'insufficient_storage' });
  assert.equal(stored.value.state, 'stopped');
  rmSync(filler);
  await stored.save(stored.value);
  assert.equal(stored.isUnsaved, false);
  assert.deepEqual(await states(), ['stopped']);
});
