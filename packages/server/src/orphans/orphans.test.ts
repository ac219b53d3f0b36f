import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { addVolume } from '../store/volumes.ts';
import { openStore } from '../store/open-store.ts';
import { insertSnapshotOperation } from '../store/snapshots.ts';
import { sqliteDialect } from '../store/sqlite.ts';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { FakeSnapshotStore } from '../testing/fake-snapshot-store.ts';
import { FakeVolumeStore } from '../testing/fake-volume-store.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { makeFolder, startTestServer } from '../testing/test-server.ts';
import { listOrphans, removeOrphan, type OrphanParts } from './orphans.ts';

const SPEC = { image: { type: 'oci', reference: 'x' } } as const;
const ignore = (): void => undefined;
const never = new AbortController().signal;
const gently = { isForced: false };

/** A store without rows, and an engine that has one of each. */
async function strays(t: TestContext) {
  const orchestrator = new FakeOrchestrator();
  const volumeStore = new FakeVolumeStore();
  const snapshotStore = new FakeSnapshotStore();
  await orchestrator.create({ id: 'stray-sandbox', spec: SPEC }, ignore);
  await orchestrator.start('stray-sandbox');
  await volumeStore.createVolume('stray-volume', 64);
  await snapshotStore.createSnapshot({ id: 'stray-snapshot', sandboxId: 'stray-sandbox' });
  const database = await openStore(sqliteDialect(join(await makeFolder(t), 'store.db')));
  t.after(() => database.destroy());
  return { database, orchestrator, nodes: orchestrator, volumeStore, snapshotStore };
}

async function idsOf(parts: OrphanParts): Promise<readonly string[]> {
  return (await listOrphans(parts, never)).map(({ kind, id }) => `${kind} ${id}`);
}

test('objects without a row are listed, not removed, and the log names the command', async (t) => {
  const parts = await strays(t);
  const lines: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  await startTestServer(t, { ...parts, logger });
  const reported = () => lines.filter((line) => line.includes('svc orphan ls'));
  await waitUntil(() => reported().length > 0, { what: 'the log says so' });
  assert.equal(reported().length, 1);
  assert.match(reported()[0] ?? '', /"orphans":\{"sandbox":1,"volume":1,"snapshot":1\}/);
  const expected = ['sandbox stray-sandbox', 'volume stray-volume', 'snapshot stray-snapshot'];
  assert.deepEqual(await idsOf(parts), expected);
  assert.equal((await parts.orchestrator.get('stray-sandbox'))?.state, 'running');
});

test('an orphan is removed by its id, once, and one that runs when that is asked for', async (t) => {
  const parts = await strays(t);
  await assert.rejects(
    removeOrphan(parts, 'stray-sandbox', gently, never),
    /runs\n {2}try: svc orphan rm -f/,
  );
  assert.equal((await parts.orchestrator.get('stray-sandbox'))?.state, 'running');
  await removeOrphan(parts, 'stray-sandbox', { isForced: true }, never);
  parts.volumeStore.hold('stray-volume', true);
  await assert.rejects(removeOrphan(parts, 'stray-volume', { isForced: true }, never), /svc orphan ls/);
  parts.volumeStore.hold('stray-volume', false);
  for (const id of ['stray-volume', 'stray-snapshot']) await removeOrphan(parts, id, gently, never);
  assert.deepEqual(await idsOf(parts), []);
  await assert.rejects(removeOrphan(parts, 'stray-volume', gently, never), /has nothing with the id/);
});

test('two who remove the same at once do no harm, and one of them at least has done it', async (t) => {
  const parts = await strays(t);
  for (const id of ['stray-sandbox', 'stray-volume', 'stray-snapshot']) {
    const removals = [1, 2].map(() => removeOrphan(parts, id, { isForced: true }, never));
    const outcomes = await Promise.allSettled(removals);
    const failures = outcomes.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : []));
    assert.ok(failures.length < 2, failures.join());
    for (const failure of failures) assert.match(failure, /has nothing with the id/);
  }
  assert.deepEqual(await idsOf(parts), []);
});

test('an object with a row is no orphan: removal is refused with its owner, also during creation and after removal', async (t) => {
  const parts = await strays(t);
  const { database, orchestrator, volumeStore, snapshotStore } = parts;
  const sandbox = await addSandbox(database, { namespace: 'n', name: 'a', spec: SPEC, ports: [] });
  await orchestrator.create({ id: sandbox.id, spec: SPEC }, ignore);
  const { organizationId } = sandbox;
  const volume = await addVolume(database, { organizationId, name: 'shelf', capacityGib: 1, labels: {} });
  await volumeStore.createVolume(volume.id, 1024);
  const { snapshotId } = await insertSnapshotOperation(database, {
    organizationId,
    snapshotName: 'clean',
    sandboxId: sandbox.id,
    sandboxName: 'a',
    labels: {},
    shouldReplace: false,
  });
  await snapshotStore.createSnapshot({ id: snapshotId, sandboxId: sandbox.id });
  const force = { isForced: true };
  const owned = [
    [sandbox.id, /is 'a' of n\n {2}try: svc rm a/],
    [volume.id, /is 'shelf' of n\n {2}try: svc volume rm shelf/],
    [snapshotId, /is 'clean' of n\n {2}try: svc snapshot rm clean/],
  ] as const;
  for (const [id, said] of owned) await assert.rejects(removeOrphan(parts, id, force, never), said);
  assert.equal((await idsOf(parts)).length, 3);
  await database.updateTable('volumes').set({ removed_at: 'x', status: 'deleting' }).execute();
  await database.updateTable('snapshot_operations').set({ status: 'failed' }).execute();
  await database.updateTable('sandboxes').set({ removed_at: 'x' }).execute();
  for (const [id, said] of owned) await assert.rejects(removeOrphan(parts, id, force, never), said);
});

test('an object that is created during the search has its row in time, and stays', async (t) => {
  const id = crypto.randomUUID();
  class Busy extends FakeOrchestrator {
    override async list() {
      await addSandbox(parts.database, { id, namespace: 'n', name: 'new', spec: SPEC, ports: [] });
      await this.create({ id, spec: SPEC }, ignore);
      return await super.list();
    }
  }
  const parts = { ...(await strays(t)), orchestrator: new Busy() };
  await assert.rejects(removeOrphan(parts, id, { isForced: true }, never), /is 'new' of n/);
  assert.notEqual(await parts.orchestrator.get(id), undefined);
});
