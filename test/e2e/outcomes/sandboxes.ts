import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import type { RestOperationName } from '@svc/contract/rest';
import { setLocalQuotas } from '@svc/server/local';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Parts, type Reply, type World } from './world.ts';

/** What the seven operations below take: a sandbox by its id or by its name. */
type Body = Reply['body'];
const byId = ({ id }: Body) => ({ params: { sandbox_id: id } });
const byName = ({ name }: Body) => ({ params: { name } });
const BOTH = [
  ['', byId],
  ['ByName', byName],
] as const;
const UNKNOWN = { id: UNKNOWN_ID, name: 'missing' };
const WAIT = { wait_for: 'running', wait_timeout: 60 };
const OLD = { 'if-match': '"99999"' };

export const sandboxes = new Outcomes();

/** Runs all the time. */
let shared: Body;

sandboxes.phase('sandboxes', {
  enter: async (world) => {
    shared = await world.running();
  },
});

sandboxes.add('sandboxes.create', 'ok', async (call, world) => {
  const name = world.fresh('made');
  const query = { start: true, ...WAIT };
  const reply = await call('sandboxes.create', { query, body: world.bodyOf(name, { labels: { a: 'b' } }) });
  assert.deepEqual([reply.body.name, reply.body.status], [name, 'running']);
  assert.equal((await world.server.engine.client.getSandbox(reply.body.id)).state, 'running');
  await call('sandboxes.remove', byId(reply.body));
  return reply;
});
sandboxes.add('sandboxes.create', 'invalid_sandbox_config', async (call) => {
  return await call('sandboxes.create', { body: { name: 'without-an-image' } });
});
sandboxes.add('sandboxes.create', 'invalid_image', async (call, world) => {
  const image = { type: 'oci', reference: 'No Image!' };
  return await call('sandboxes.create', { body: world.bodyOf(world.fresh('x'), { image }) });
});
const BEYOND = {
  policy: { rules: [{ direction: 'egress', action: 'allow', destination: { group: 'private' } }] },
};
sandboxes.add('sandboxes.create', 'network_ceiling_exceeded', async (call, world) => {
  const reply = await call('sandboxes.create', { body: world.bodyOf(world.fresh('x'), { network: BEYOND }) });
  assert.deepEqual(reply.body.error.details['ceiling'], ['public']);
  return reply;
});
sandboxes.add('network.update', 'network_ceiling_exceeded', async (call, world) => {
  const reply = await call('network.update', { ...byId(await world.created()), body: BEYOND });
  assert.equal(reply.body.error.details['field'], 'network.policy.rules[0]');
  return reply;
});
sandboxes.add('sandboxes.create', 'isolation_unavailable', async (call, world) => {
  return await call('sandboxes.create', { body: world.bodyOf(world.fresh('x'), { isolation: 'microvm' }) });
});
sandboxes.add('sandboxes.create', 'name_already_exists', async (call, world) => {
  const { name } = await world.created();
  return await call('sandboxes.create', { body: world.bodyOf(name) });
});
sandboxes.add('sandboxes.create', 'volume_not_found', async (call, world) => {
  const mounts = [{ type: 'named', name: 'nobodys', guest: '/data' }];
  return await call('sandboxes.create', { body: world.bodyOf(world.fresh('x'), { mounts }) });
});
sandboxes.add('sandboxes.create', 'snapshot_not_found', async (call, world) => {
  const disk_snapshot_ref = { type: 'managed', id: UNKNOWN_ID };
  const body = { name: world.fresh('x'), source: 'disk_snapshot', disk_snapshot_ref };
  return await call('sandboxes.create', { body });
});

sandboxes.add('sandboxes.list', 'ok', async (call, world) => {
  const { id } = await world.created({ labels: { listed: 'yes' } });
  const labels = JSON.stringify({ listed: 'yes' });
  const reply = await call('sandboxes.list', { query: { limit: 1, labels } });
  assert.equal(reply.body.data[0].id, id);
  return reply;
});
const WEB = { host: 'example.com', port: 443 };
sandboxes.add('network.explain', 'ok', async (call) => {
  const { body } = await call('network.explain', { ...byId(shared), body: { host: '10.0.0.1', port: 443 } });
  assert.deepEqual([body.action, body.decided_by, body.addresses[0].group], ['deny', 'ceiling', 'private']);
  const reply = await call('network.explain', { ...byId(shared), body: WEB });
  assert.deepEqual([reply.body.action, reply.body.rule.index, reply.body.assumed], ['allow', 1, true]);
  return reply;
});
sandboxes.add('network.explain', 'sandbox_not_found', (call) =>
  call('network.explain', { ...byId(UNKNOWN), body: WEB }),
);
sandboxes.add('network.log', 'ok', async (call) => {
  const reply = await call('network.log', byId(shared));
  assert.deepEqual([reply.body.has_more, reply.body.next_cursor, reply.body.left_out], [false, null, 0]);
  return reply;
});
sandboxes.add('network.follow', 'ok', async (call, world) => {
  const reply = await call('network.follow', byId(await world.created()));
  assert.match(reply.body, /^event: end$/m);
  return reply;
});
sandboxes.add('network.log', 'invalid_cursor', async (call) => {
  return await call('network.log', { ...byId(shared), query: { cursor: 'none' } });
});
sandboxes.add('network.follow', 'invalid_cursor', async (call) => {
  return await call('network.follow', { ...byId(shared), headers: { 'last-event-id': 'none' } });
});
for (const operation of ['network.log', 'network.follow'] as const) {
  sandboxes.add(operation, 'sandbox_not_found', (call) => call(operation, byId(UNKNOWN)));
}
const CLOSED = { policy: { default_egress: 'deny', rules: [] } };
sandboxes.add('network.update', 'ok', async (call, world) => {
  const box = await world.running();
  const reply = await call('network.update', { ...byId(box), body: CLOSED });
  assert.equal(reply.body.status, 'running');
  assert.deepEqual((await world.server.engine.client.getSandbox(box.id)).spec.network, CLOSED);
  const { body } = await call('network.explain', { ...byId(box), body: WEB });
  assert.deepEqual([body.action, body.decided_by], ['deny', 'name']);
  await call('sandboxes.remove', byId(box));
  return reply;
});
sandboxes.add('network.update', 'invalid_sandbox_config', async (call, world) => {
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: 'fd00::/8' } };
  return await call('network.update', {
    ...byId(await world.created()),
    body: { policy: { rules: [rule] } },
  });
});
sandboxes.add('network.update', 'precondition_failed', async (call, world) => {
  return await call('network.update', { ...byId(await world.created()), body: CLOSED, headers: OLD });
});
sandboxes.add('network.update', 'sandbox_not_found', (call) =>
  call('network.update', { ...byId(UNKNOWN), body: CLOSED }),
);
sandboxes.add('sandboxes.list', 'invalid_cursor', async (call) => {
  return await call('sandboxes.list', { query: { cursor: 'none' } });
});
sandboxes.add('sandboxes.volumes', 'ok', async (call, world) => {
  const { body: volume } = await call('volumes.create', {
    body: { name: world.fresh('v'), capacity_gib: 1 },
  });
  const mounts = [{ type: 'named', name: volume.name, guest: '/data' }];
  const reply = await call('sandboxes.volumes', byId(await world.created({ mounts })));
  const expected = { volume_id: volume.id, name: volume.name, mount_path: '/data', read_only: false };
  assert.deepEqual(reply.body, [expected]);
  return reply;
});
sandboxes.add('sandboxes.volumes', 'sandbox_not_found', (call) => call('sandboxes.volumes', byId(UNKNOWN)));
sandboxes.add('sandboxes.metrics', 'sandbox_not_found', (call) => call('sandboxes.metrics', byId(UNKNOWN)));

sandboxes.add('progress.follow', 'ok', async (call) => {
  const reply = await call('progress.follow', byId(shared));
  assert.match(reply.body, /^event: end$/m);
  return reply;
});
sandboxes.add('progress.follow', 'sandbox_not_found', (call) => call('progress.follow', byId(UNKNOWN)));
sandboxes.add('images.pull', 'ok', async (call) => {
  const reply = await call('images.pull', { body: { reference: BUSYBOX, pull_policy: 'if_missing' } });
  assert.match(reply.body, /^event: done$/m);
  return reply;
});
sandboxes.add('images.list', 'ok', (call) => call('images.list'));
sandboxes.add('images.remove', 'image_not_found', (call) =>
  call('images.remove', { params: { reference: BUSYBOX } }),
);
sandboxes.add('images.remove', 'invalid_image', (call) =>
  call('images.remove', { params: { reference: 'Not A Name' } }),
);
sandboxes.add('images.pull', 'invalid_sandbox_config', async (call) => {
  const registry = { mode: 'specific', credential_id: UNKNOWN_ID };
  return await call('images.pull', { body: { reference: BUSYBOX, registry } });
});

sandboxes.add('sandboxes.update', 'ok', async (call, world) => {
  const box = await world.created();
  const [name, slug] = [world.fresh('renamed'), world.fresh('slug')];
  const etag = (await call('sandboxes.get', byId(box))).headers.get('etag') ?? '';
  const reply = await call('sandboxes.update', {
    ...byId(box),
    body: { name, slug },
    headers: { 'if-match': etag },
  });
  assert.deepEqual([reply.body.name, reply.body.slug, reply.body.id], [name, slug, box.id]);
  return reply;
});
sandboxes.add('sandboxes.update', 'sandbox_not_found', async (call) => {
  return await call('sandboxes.update', { ...byId(UNKNOWN), body: { name: 'x' } });
});
sandboxes.add('sandboxes.update', 'name_already_exists', async (call, world) => {
  const [{ name }, box] = [await world.created(), await world.created()];
  return await call('sandboxes.update', { ...byId(box), body: { name } });
});
sandboxes.add('sandboxes.update', 'precondition_failed', async (call, world) => {
  return await call('sandboxes.update', {
    ...byId(await world.created()),
    body: { name: 'x' },
    headers: OLD,
  });
});

for (const [suffix, by] of BOTH) {
  const get = `sandboxes.get${suffix}` as const;
  const start = `sandboxes.start${suffix}` as const;
  const stop = `sandboxes.stop${suffix}` as const;
  const remove = `sandboxes.remove${suffix}` as const;
  const recover = `sandboxes.recover${suffix}` as const;
  sandboxes.add(get, 'ok', async (call, world) => {
    const box = await world.created();
    const reply = await call(get, by(box));
    assert.deepEqual([reply.body.id, reply.body.status], [box.id, 'created']);
    assert.match(reply.headers.get('etag') ?? '', /^"\d+"$/);
    return reply;
  });
  sandboxes.add(start, 'ok', async (call, world) => {
    const box = await world.created();
    const reply = await call(start, { ...by(box), query: WAIT });
    assert.equal(reply.body.status, 'running', JSON.stringify(reply.body));
    assert.equal((await world.server.engine.client.getSandbox(box.id)).state, 'running');
    await call('sandboxes.remove', byId(box));
    return reply;
  });
  sandboxes.add(stop, 'ok', async (call, world) => {
    const box = await world.running();
    const reply = await call(stop, by(box));
    assert.equal(reply.body.status, 'stopping');
    const { stopped_at: stoppedAt, started_at: startedAt } = await world.until(box.id, 'stopped');
    assert.ok(stoppedAt >= startedAt);
    return reply;
  });
  sandboxes.add(remove, 'ok', async (call, world) => {
    const { client } = world.server.engine;
    const box = await world.running();
    const reply = await call(remove, by(box));
    const isGone = async () => !(await client.listSandboxes()).some(({ id }) => id === box.id);
    await waitUntil(isGone, { timeoutMs: 60_000, what: 'the engine removed it' });
    assert.equal((await call('sandboxes.get', byId(box))).status, 404);
    return reply;
  });
  sandboxes.add(remove, 'precondition_failed', async (call, world) => {
    return await call(remove, { ...by(await world.created()), headers: OLD });
  });
  for (const operation of [start, stop] as const) {
    sandboxes.add(operation, 'precondition_failed', (call) =>
      call(operation, { ...by(shared), headers: OLD }),
    );
  }
  sandboxes.add(recover, 'precondition_failed', async (call) => {
    return await call(recover, { ...by(shared), body: { action: 'stop' }, headers: OLD });
  });
  sandboxes.add(start, 'invalid_state_transition', async (call) => {
    return await call(start, by(shared));
  });
  sandboxes.add(stop, 'invalid_state_transition', async (call, world) => {
    return await call(stop, by(await world.created()));
  });
  sandboxes.add(recover, 'invalid_state_transition', async (call) => {
    return await call(recover, { ...by(shared), body: { action: 'restart' } });
  });
  for (const operation of [get, start, stop, remove] as const) {
    sandboxes.add(operation, 'sandbox_not_found', (call) => call(operation, by(UNKNOWN)));
  }
  sandboxes.add(recover, 'sandbox_not_found', async (call) => {
    return await call(recover, { ...by(UNKNOWN), body: { action: 'wait' } });
  });
}

// Last, because what is measured now and then takes a while to be.
sandboxes.add('sandboxes.metrics', 'ok', async (call) => {
  const parts = { ...byId(shared), query: { range_secs: 60, step_secs: 5 } };
  const isMeasured = async () =>
    (await call('sandboxes.metrics', parts)).body.metrics.memory_limit_bytes.length > 0;
  await waitUntil(isMeasured, { timeoutMs: 60_000, what: 'the sandbox was measured' });
  const reply = await call('sandboxes.metrics', parts);
  assert.equal(reply.body.metrics.memory_limit_bytes[0].samples.at(-1)[1], 64 * 1024 * 1024);
  return reply;
});

sandboxes.phase('sandboxes where no more may run or exist', {
  enter: async ({ place, acme }) => {
    const limits = { max_concurrent_persistent_running: 1, max_memory_mib_per_sandbox: 64 };
    await setLocalQuotas(place, acme.slug, limits);
  },
  leave: async ({ place, acme }) => {
    const limits = { max_concurrent_persistent_running: 'plan', max_memory_mib_per_sandbox: 'plan' };
    await setLocalQuotas(place, acme.slug, limits);
  },
});
sandboxes.add('sandboxes.create', 'quota_exceeded', async (call, world) => {
  const body = world.bodyOf(world.fresh('x'), { resources: { memory_mib: 65 } });
  const reply = await call('sandboxes.create', { body });
  const { limit, value, maximum } = reply.body.error.details;
  assert.deepEqual([limit, value, maximum], ['max_memory_mib_per_sandbox', 65, 64]);
  return reply;
});
for (const [suffix, by] of BOTH) {
  const start = `sandboxes.start${suffix}` as const;
  sandboxes.add(start, 'quota_exceeded', async (call, world) => {
    const box = await world.created();
    const reply = await call(start, by(box));
    const { limit, value, maximum } = reply.body.error.details;
    assert.deepEqual([limit, maximum], ['max_concurrent_persistent_running', 1]);
    assert.ok(value > maximum);
    assert.equal((await call('sandboxes.get', byId(box))).body.status, 'created');
    return reply;
  });
}

/** Made before the engine goes away, one for each answer to "what now?" on each address. */
const ACTIONS = ['wait', 'restart', 'stop', 'wait'] as const;
const lost: Body[] = [];
const take = (): { readonly box: Body; readonly action: (typeof ACTIONS)[number] } => {
  const [box, action] = [lost.shift(), ACTIONS[lost.length]];
  assert.ok(box !== undefined && action !== undefined);
  return { box, action };
};
/** Sandboxes and what they must become when the engine is back. */
const promised: { readonly box: Body; readonly action: (typeof ACTIONS)[number] }[] = [];

sandboxes.outage('sandboxes', {
  prepare: async (world) => {
    lost.push(...(await Promise.all(ACTIONS.map(() => world.running()))));
  },
  leave: async (world) => {
    for (const { box, action } of promised) {
      if (action === 'wait') await keepWaiting(world, box.id);
      const after = await world.until(box.id, action === 'stop' ? 'stopped' : 'running');
      const isNewRun = after.started_at !== box.started_at;
      assert.equal(isNewRun, action === 'restart', `${action}: ${JSON.stringify(after)}`);
    }
  },
});
sandboxes.add('sandboxes.create', 'orchestrator_unreachable', async (call, world) => {
  return await call('sandboxes.create', { query: { start: true }, body: world.bodyOf(world.fresh('x')) });
});
sandboxes.add('network.explain', 'orchestrator_unreachable', async (call, world) => {
  return await call('network.explain', { ...byId(await world.created()), body: WEB });
});
sandboxes.add('lifecycle.update', 'orchestrator_unreachable', async (call, world) => {
  const body = { idle_timeout_secs: 60 };
  return await call('lifecycle.update', { ...byId(await world.created()), body });
});
sandboxes.add('lifecycle.keepAlive', 'orchestrator_unreachable', async (call, world) => {
  return await call('lifecycle.keepAlive', byId(await world.created()));
});
for (const operation of ['network.log', 'network.follow'] as const) {
  sandboxes.add(operation, 'orchestrator_unreachable', async (call, world) => {
    return await call(operation, byId(await world.created()));
  });
}
sandboxes.add('network.update', 'orchestrator_unreachable', async (call, world) => {
  return await call('network.update', { ...byId(await world.created()), body: CLOSED });
});
sandboxes.add('capabilities.get', 'orchestrator_unreachable', (call) => call('capabilities.get'));
sandboxes.add('images.list', 'orchestrator_unreachable', (call) => call('images.list'));
sandboxes.add('images.remove', 'orchestrator_unreachable', (call) =>
  call('images.remove', { params: { reference: BUSYBOX } }),
);
sandboxes.add('images.pull', 'orchestrator_unreachable', async (call) => {
  return await call('images.pull', { body: { reference: BUSYBOX } });
});
for (const [suffix, by] of BOTH) {
  for (const verb of ['start', 'stop', 'remove'] as const) {
    const operation: RestOperationName = `sandboxes.${verb}${suffix}`;
    sandboxes.add(operation, 'orchestrator_unreachable', async (call, world) => {
      return await call(operation, by(await world.created()));
    });
  }
  const recover = `sandboxes.recover${suffix}` as const;
  sandboxes.add(recover, 'ok', async (call, world) => {
    const { box, action } = take();
    const away = await world.until(box.id, 'recovery_decision_required');
    assert.equal(away.temporarily_unavailable_since <= away.automatic_recovery_ends_at, true);
    const parts: Parts = { ...by(box), body: { action } };
    const reply = await call(recover, parts);
    const expected = { wait: 'temporarily_unavailable', restart: 'starting', stop: 'stopping' };
    assert.equal(reply.body.status, expected[action]);
    promised.push({ box, action });
    return reply;
  });
}

/** However often the time to wait is over before the engine is seen to be back. */
async function keepWaiting(world: World, id: string): Promise<void> {
  const call = world.caller('key');
  const isBack = async () => {
    const { status } = (await call('sandboxes.get', byId({ id }))).body;
    if (status === 'recovery_decision_required')
      await call('sandboxes.recover', { ...byId({ id }), body: { action: 'wait' } });
    return status === 'running';
  };
  await waitUntil(isBack, { timeoutMs: 60_000, what: 'waiting was enough' });
}
