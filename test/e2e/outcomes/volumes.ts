import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { setLocalQuotas } from '@svc/server/local';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Reply, type World } from './world.ts';

type Body = Reply['body'];
const GIB = 1024 ** 3;
const OLD = { 'if-match': '"99999"' };
const of = ({ id }: Body) => ({ params: { id } });
const NOBODYS = { id: UNKNOWN_ID };

export const volumes = new Outcomes();

volumes.phase('volumes');

volumes.add('volumes.create', 'ok', async (call, world) => {
  const body = { name: world.fresh('made'), capacity_gib: 2, labels: { a: 'b' } };
  const reply = await call('volumes.create', { body });
  assert.deepEqual([reply.body.name, reply.body.capacity_bytes], [body.name, 2 * GIB]);
  const { capacityBytes } = await world.server.engine.client.volumes.volumeUsage(reply.body.id);
  assert.equal(capacityBytes, 2 * GIB);
  return reply;
});
volumes.add('volumes.create', 'name_already_exists', async (call, world) => {
  const { name } = await makeVolume(world);
  return await call('volumes.create', { body: { name } });
});
volumes.add('volumes.list', 'ok', async (call, world) => {
  const { id } = await makeVolume(world);
  const reply = await call('volumes.list');
  const found = reply.body.find((volume: Body) => volume.id === id);
  assert.equal(typeof found.used_bytes, 'number');
  return reply;
});
volumes.add('volumes.getDefault', 'ok', async (call) => {
  const reply = await call('volumes.getDefault');
  assert.deepEqual([reply.body.kind, reply.body.name], ['host', null]);
  return reply;
});
volumes.add('volumes.get', 'ok', async (call, world) => {
  const volume = await makeVolume(world);
  const reply = await call('volumes.get', of(volume));
  assert.deepEqual([reply.body.id, reply.body.status], [volume.id, 'active']);
  assert.match(reply.headers.get('etag') ?? '', /^"\d+"$/);
  return reply;
});
volumes.add('volumes.get', 'volume_not_found', (call) => call('volumes.get', of(NOBODYS)));
volumes.add('volumes.metrics', 'ok', async (call, world) => {
  const volume = await makeVolume(world);
  const reply = await call('volumes.metrics', { ...of(volume), query: { range_secs: 60, step_secs: 15 } });
  assert.equal(reply.body.volume_id, volume.id);
  return reply;
});
volumes.add('volumes.metrics', 'volume_not_found', (call) => call('volumes.metrics', of(NOBODYS)));

volumes.add('volumes.update', 'ok', async (call, world) => {
  const volume = await makeVolume(world);
  const etag = (await call('volumes.get', of(volume))).headers.get('etag') ?? '';
  const body = { capacity_gib: 3, labels: { size: 'large' } };
  const reply = await call('volumes.update', { ...of(volume), body, headers: { 'if-match': etag } });
  assert.deepEqual([reply.body.capacity_bytes, reply.body.labels], [3 * GIB, { size: 'large' }]);
  assert.equal((await world.server.engine.client.volumes.volumeUsage(volume.id)).capacityBytes, 3 * GIB);
  return reply;
});
volumes.add('volumes.update', 'volume_not_found', async (call) => {
  return await call('volumes.update', { ...of(NOBODYS), body: { labels: {} } });
});
volumes.add('volumes.update', 'precondition_failed', async (call, world) => {
  return await call('volumes.update', { ...of(await makeVolume(world)), body: { labels: {} }, headers: OLD });
});
volumes.add('volumes.update', 'quota_exceeded', async (call, world) => {
  const volume = await makeVolume(world);
  const { place, acme } = world;
  const total = (await call('volumes.list')).body.length * 3;
  await setLocalQuotas(place, acme.slug, { max_total_storage_gib: total });
  try {
    // Too much together with the others, not alone.
    return await call('volumes.update', { ...of(volume), body: { capacity_gib: total } });
  } finally {
    await setLocalQuotas(place, acme.slug, { max_total_storage_gib: 'plan' });
  }
});
volumes.add('volumes.create', 'quota_exceeded', async (call, world) => {
  const { place, acme } = world;
  await makeVolume(world);
  await setLocalQuotas(place, acme.slug, { max_total_storage_gib: 1 });
  try {
    const reply = await call('volumes.create', { body: { name: world.fresh('x'), capacity_gib: 1 } });
    const { limit, value, maximum } = reply.body.error.details;
    assert.deepEqual([limit, maximum, value > maximum], ['max_total_storage_gib', 1, true]);
    return reply;
  } finally {
    await setLocalQuotas(place, acme.slug, { max_total_storage_gib: 'plan' });
  }
});

volumes.add('volumes.remove', 'ok', async (call, world) => {
  const volume = await makeVolume(world);
  const reply = await call('volumes.remove', of(volume));
  const { client } = world.server.engine;
  const isGone = async () => !(await client.volumes.listVolumes()).some(({ id }) => id === volume.id);
  await waitUntil(isGone, { timeoutMs: 60_000, what: 'the engine removed it' });
  return reply;
});
volumes.add('volumes.remove', 'volume_not_found', (call) => call('volumes.remove', of(NOBODYS)));
volumes.add('volumes.remove', 'precondition_failed', async (call, world) => {
  return await call('volumes.remove', { ...of(await makeVolume(world)), headers: OLD });
});

/** In a sandbox that runs. */
let mounted: Body;
volumes.phase('a volume in a sandbox', {
  enter: async (world) => {
    mounted = await makeVolume(world, 2);
    await world.running({ mounts: [{ type: 'named', name: mounted.name, guest: '/data' }] });
  },
});
volumes.add('volumes.update', 'volume_in_use', async (call) => {
  return await call('volumes.update', { ...of(mounted), body: { capacity_gib: 1 } });
});
volumes.add('volumes.remove', 'volume_in_use', (call) => call('volumes.remove', of(mounted)));

const run = promisify(execFile);
volumes.phase('volumes where the disk of the host is full', {
  enter: async ({ server }) => {
    const folder = join(server.engine.folder, 'volumes');
    await run('mount', ['-t', 'tmpfs', '-o', 'size=8m,mode=700', 'svc-full', folder]);
  },
  leave: async ({ server }) => {
    await run('umount', ['-l', join(server.engine.folder, 'volumes')]);
  },
});
volumes.add('volumes.create', 'insufficient_storage', async (call, world) => {
  return await call('volumes.create', { body: { name: world.fresh('x') } });
});

let kept: Body;
let leaving: Body;
volumes.outage('volumes', {
  prepare: async (world) => {
    [kept, leaving] = [await makeVolume(world), await makeVolume(world)];
  },
  enter: async (world) => {
    assert.equal((await world.caller('key')('volumes.remove', of(leaving))).status, 200);
  },
});
volumes.add('volumes.create', 'orchestrator_unreachable', async (call, world) => {
  return await call('volumes.create', { body: { name: world.fresh('x') } });
});
volumes.add('volumes.update', 'orchestrator_unreachable', async (call) => {
  return await call('volumes.update', { ...of(kept), body: { capacity_gib: 2 } });
});
volumes.add('volumes.update', 'invalid_state_transition', async (call) => {
  return await call('volumes.update', { ...of(leaving), body: { capacity_gib: 2 } });
});

export async function makeVolume(world: World, capacityGib = 1): Promise<Body> {
  const body = { name: world.fresh('volume'), capacity_gib: capacityGib };
  const reply = await world.caller('key')('volumes.create', { body });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.body;
}
