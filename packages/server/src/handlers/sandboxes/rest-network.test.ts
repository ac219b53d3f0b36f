import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddress } from '@svc/engine/policy';
import { body, startHealthy, UNKNOWN_ID } from '../../testing/sandboxes.ts';

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

test('a question that means nothing is refused, and so is one about a sandbox of nobody', async (t) => {
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
