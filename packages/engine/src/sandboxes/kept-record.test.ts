import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { EventLog } from '../events/event-log.ts';
import { engineRecord } from '../testing/engine-record.ts';
import { KeptRecord } from './kept-record.ts';
import { RecordFiles } from './record-files.ts';

const NEVER_MS = 2 ** 30;

async function keep(folder: string) {
  const records = new RecordFiles(folder, { replaceMs: NEVER_MS });
  const record = engineRecord({ id: 'one', state: 'created' });
  await records.write(record, { durable: false });
  const kept = new KeptRecord({ records, events: new EventLog(), logger: pino({ enabled: false }) }, record);
  const states = async () => (await records.readAll(() => assert.fail('broken'))).map(({ state }) => state);
  return { kept, states, folder: records.folderOf(record.handle) };
}

test('each state is another line, which what reads the records takes for the record', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-kept-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { kept, states, folder } = await keep(base);
  t.after(() => kept.journal.close());
  for (const state of ['starting', 'running', 'stopping', 'stopped'] as const) {
    await kept.move(state, {});
    assert.deepEqual(await states(), [state]);
    assert.equal(kept.value.state, state);
  }
  const lines = readFileSync(join(folder, 'record.json'), 'utf8').split('\n').filter(Boolean);
  assert.equal(lines.length, 5);
});

test('a record whose folder somebody removed is written anew', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-kept-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { kept, states, folder } = await keep(base);
  t.after(() => kept.journal.close());
  rmSync(folder, { recursive: true });
  await kept.move('starting', {});
  assert.deepEqual(await states(), ['starting']);
});

test('what is said of one that was removed makes no sandbox of it again', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-kept-'));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const { kept, states, folder } = await keep(base);
  await kept.move('starting', {});
  kept.remove();
  await kept.move('failed', {});
  assert.equal(kept.value.state, 'failed');
  assert.deepEqual([await states(), existsSync(folder)], [[], false]);
});

test('a full disk refuses a start and does not hold up an end, which is saved when there is room', async (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-kept-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'none', base]);
  const { kept, states } = await keep(base);
  t.after(() => {
    kept.journal.close();
    execFileSync('umount', [base]);
    rmSync(base, { recursive: true });
  });
  await kept.move('starting', {});
  await kept.move('running', {});
  const filler = join(base, 'filler');
  assert.throws(() => writeFileSync(filler, Buffer.alloc(256 * 1024)), { code: 'ENOSPC' });
  // More than what is left of the block that the file has.
  const long = { createdAt: 'x'.repeat(8192) };
  await kept.move('stopping', long);
  await kept.move('stopped', long);
  assert.equal(kept.isUnsaved, true);
  assert.equal(kept.value.state, 'stopped');
  assert.deepEqual(await states(), ['running']);
  await assert.rejects(kept.move('starting', {}), { code: 'insufficient_storage' });
  assert.equal(kept.value.state, 'stopped');
  rmSync(filler);
  await kept.save(kept.value);
  assert.equal(kept.isUnsaved, false);
  assert.deepEqual(await states(), ['stopped']);
});
