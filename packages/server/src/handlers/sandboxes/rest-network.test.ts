import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { parseAddress } from '@svc/engine/policy';
import { body, eventsOf, startHealthy, UNKNOWN_ID } from '../../testing/sandboxes.ts';

const RULE = { direction: 'egress', destination: { domain: 'a.example' }, action: 'allow' };

test('a connection is explained for a sandbox in any state, by what it has resolved', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', {
    body: body('one', { network: { policy: { rules: [RULE] } } }),
  });
  const explain = (asked: object) =>
    server.rest('POST', `/sandboxes/${made.id}/network/explain`, { body: asked });
  const first = await explain({ host: 'a.example', port: 443 });
  assert.equal(first.status, 200);
  assert.partialDeepStrictEqual(first.body, {
    action: 'allow',
    decided_by: 'rule',
    rule: { index: 0, rule: RULE },
    by_name: true,
    addresses: [],
    assumed: true,
  });
  await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`, { body: {} });
  const address = parseAddress('5.6.7.8');
  assert.ok(address);
  server.orchestrator.resolved = [{ name: 'a.example', address }];
  const { body: resolved } = await explain({ host: 'a.example', port: 443, protocol: 'udp' });
  assert.deepEqual(resolved.addresses, [
    { address: '5.6.7.8', group: 'public', action: 'allow', rule: 0, decided_by: 'rule' },
  ]);
  const { body: denied } = await explain({ host: '5.6.7.9', port: 443 });
  assert.deepEqual([denied.action, denied.decided_by, denied.rule], ['deny', 'default', null]);
});

test('an invalid question is refused, and so is one about an unknown sandbox', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const path = `/sandboxes/${made.id}/network/explain`;
  for (const asked of [
    { port: 1 },
    { host: 'a b', port: 1 },
    { host: 'a.example' },
    { host: 'a', port: 70_000 },
  ]) {
    const { status } = await server.rest('POST', path, { body: asked });
    assert.equal(status, 400, JSON.stringify(asked));
  }
  const unknown = await server.rest('POST', `/sandboxes/${UNKNOWN_ID}/network/explain`, {
    body: { host: 'a.example', port: 1 },
  });
  assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'sandbox_not_found']);
});

const CLOSED = { default_egress: 'deny', rules: [] };
const STRICT = { strict: true };

test('a change of the network of a running sandbox applies at once, is recorded, and is kept for its next run', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one', { network: { max_connections: 7 } }),
  });
  const patch = (change: object, headers = {}) =>
    server.rest('PATCH', `/sandboxes/${made.id}/network`, { body: change, headers });
  const { status, body: changed } = await patch({ policy: CLOSED });
  assert.deepEqual([status, changed.status], [200, 'running']);
  const heldNow = async () => (await server.orchestrator.get(made.id))?.network;
  assert.deepEqual(await heldNow(), { max_connections: 7, policy: CLOSED });
  await server.rest('POST', `/sandboxes/${made.id}/stop`, { body: {} });
  await patch(STRICT);
  assert.deepEqual(await heldNow(), { max_connections: 7, policy: CLOSED, ...STRICT });
  await patch({ policy: null, strict: false });
  await patch({ policy: null });
  const events = (await eventsOf(server, made.id)).filter((type) => type === 'sandbox_network_changed');
  assert.equal(events.length, 3, 'what changes nothing is no event');
  assert.equal((await patch(STRICT, { 'if-match': '"99999"' })).body.error.code, 'precondition_failed');
});

test('a sandbox that was never started starts with the changed policy', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  await server.rest('PATCH', `/sandboxes/${made.id}/network`, { body: { policy: CLOSED } });
  await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`, { body: {} });
  assert.deepEqual(server.orchestrator.requestOf(made.id).spec.network, { policy: CLOSED });
});

test('a change that was written down and not carried out is carried out with the next look', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one'),
  });
  server.orchestrator.failAtChange = server.orchestrator.changesAsked + 1;
  const refused = await server.rest('PATCH', `/sandboxes/${made.id}/network`, { body: { policy: CLOSED } });
  assert.equal(refused.body.error.code, 'orchestrator_unreachable');
  server.orchestrator.goAway();
  server.orchestrator.comeBack();
  await waitUntil(async () =>
    isDeepStrictEqual((await server.orchestrator.get(made.id))?.network, { policy: CLOSED }),
  );
});

test('fields that a create refuses are refused, and so is a sandbox without a network', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const path = `/sandboxes/${made.id}/network`;
  for (const change of [
    { enabled: false },
    { policy: { rules: [{}] } },
    { max_connections: 0 },
    { ports: [] },
  ])
    assert.equal((await server.rest('PATCH', path, { body: change })).status, 400, JSON.stringify(change));
  const { body: alone } = await server.rest('POST', '/sandboxes', {
    body: body('alone', { network: { enabled: false } }),
  });
  const refused = await server.rest('PATCH', `/sandboxes/${alone.id}/network`, { body: { policy: CLOSED } });
  assert.deepEqual([refused.status, refused.body.error.details.field], [400, 'network.enabled']);
});
