import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import { setLocalQuotas } from '@svc/server/local';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Reply, type World } from './world.ts';

type Body = Reply['body'];
const byId = ({ id }: Body) => ({ params: { snapshot_id: id } });
const byName = ({ name }: Body) => ({ params: { name } });
const BOTH = [
  ['', byId],
  ['ByName', byName],
] as const;
const NOBODYS = { id: UNKNOWN_ID, name: 'nobodys' };

/** Rests, so that it may be copied. */
let source: Body;
/** A copy of it that stays. */
let kept: Body;

export const snapshots = new Outcomes();

snapshots.phase('snapshots', {
  enter: async (world) => {
    source = await world.stopped();
    kept = await snapshotOf(world.caller('key'), world);
  },
});

snapshots.add('snapshots.create', 'ok', async (call, world) => {
  const name = world.fresh('copy');
  const reply = await call('snapshots.create', { body: { kind: 'disk', sandbox_id: source.id, name } });
  const { result } = await finish(call, reply.body.id);
  assert.deepEqual([result.name, result.sandbox_id], [name, source.id]);
  assert.ok((await world.server.engine.client.listSnapshots()).some(({ id }) => id === result.id));
  return reply;
});
snapshots.add('snapshots.create', 'sandbox_not_found', async (call) => {
  return await call('snapshots.create', { body: { kind: 'disk', sandbox_id: UNKNOWN_ID, name: 'x' } });
});
snapshots.add('snapshots.create', 'name_already_exists', async (call) => {
  const body = { kind: 'disk', sandbox_id: source.id, name: kept.name };
  return await call('snapshots.create', { body });
});
snapshots.add('snapshots.create', 'snapshot_ineligible', async (call, world) => {
  const { id } = await world.created();
  return await call('snapshots.create', { body: { kind: 'disk', sandbox_id: id, name: 'x' } });
});
snapshots.add('snapshots.create', 'quota_exceeded', async (call, world) => {
  const { place, acme } = world;
  await setLocalQuotas(place, acme.slug, { max_snapshot_storage_gib: 0 });
  try {
    const body = { kind: 'disk', sandbox_id: source.id, name: world.fresh('x') };
    const reply = await call('snapshots.create', { body });
    assert.equal(reply.body.error.details.limit, 'max_snapshot_storage_gib');
    return reply;
  } finally {
    await setLocalQuotas(place, acme.slug, { max_snapshot_storage_gib: 'plan' });
  }
});
snapshots.add('snapshots.candidates', 'ok', async (call) => {
  const reply = await call('snapshots.candidates');
  assert.ok(reply.body.data.some(({ id }: Body) => id === source.id));
  return reply;
});
snapshots.add('snapshots.list', 'ok', async (call) => {
  const reply = await call('snapshots.list', { query: { limit: 100 } });
  assert.ok(reply.body.data.some(({ id }: Body) => id === kept.id));
  return reply;
});
snapshots.add('snapshots.listOperations', 'ok', async (call) => {
  const reply = await call('snapshots.listOperations', { query: { limit: 100 } });
  assert.ok(reply.body.data.some((operation: Body) => operation.snapshot_name === kept.name));
  return reply;
});
for (const list of ['snapshots.candidates', 'snapshots.list', 'snapshots.listOperations'] as const) {
  snapshots.add(list, 'invalid_cursor', (call) => call(list, { query: { cursor: 'none' } }));
}
snapshots.add('snapshots.getOperation', 'ok', async (call) => {
  const { data } = (await call('snapshots.listOperations', { query: { limit: 1 } })).body;
  const reply = await call('snapshots.getOperation', { params: { operation_id: data[0].id } });
  assert.equal(reply.body.status, 'succeeded');
  return reply;
});
snapshots.add('snapshots.getOperation', 'not_found', async (call) => {
  return await call('snapshots.getOperation', { params: { operation_id: UNKNOWN_ID } });
});
for (const [suffix, by] of BOTH) {
  const get = `snapshots.get${suffix}` as const;
  const remove = `snapshots.remove${suffix}` as const;
  snapshots.add(get, 'ok', async (call) => {
    const reply = await call(get, by(kept));
    assert.deepEqual([reply.body.id, reply.body.digest], [kept.id, kept.digest]);
    return reply;
  });
  snapshots.add(remove, 'ok', async (call, world) => {
    const { client } = world.server.engine;
    const snapshot = await snapshotOf(call, world);
    const reply = await call(remove, by(snapshot));
    const isGone = async () => !(await client.listSnapshots()).some(({ id }) => id === snapshot.id);
    await waitUntil(isGone, { timeoutMs: 60_000, what: 'the engine removed it' });
    return reply;
  });
  for (const operation of [get, remove] as const) {
    snapshots.add(operation, 'snapshot_not_found', (call) => call(operation, by(NOBODYS)));
  }
}

snapshots.outage('snapshots');
snapshots.add('snapshots.create', 'orchestrator_unreachable', async (call) => {
  return await call('snapshots.create', { body: { kind: 'disk', sandbox_id: source.id, name: 'x' } });
});

async function snapshotOf(call: Call, world: World): Promise<Body> {
  const body = { kind: 'disk', sandbox_id: source.id, name: world.fresh('snapshot') };
  const { id } = (await call('snapshots.create', { body })).body;
  return (await finish(call, id)).result;
}

async function finish(call: Call, id: string): Promise<Body> {
  let operation: Body;
  const isDone = async () => {
    operation = (await call('snapshots.getOperation', { params: { operation_id: id } })).body;
    return operation.status === 'succeeded' || operation.status === 'failed';
  };
  await waitUntil(isDone, { timeoutMs: 60_000, what: 'the snapshot is made' });
  assert.equal(operation.status, 'succeeded', JSON.stringify(operation));
  return operation;
}
