import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { body, startHealthy } from '../testing/sandboxes.ts';

test('what a sandbox was kept from is in the audit log: the first ten of a minute, of each kind', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const { denied } = server.orchestrator;
  await waitUntil(() => denied.listeners > 0);
  const violation = {
    action: 'block_and_log',
    method: 'GET',
    host: 'evil.example',
    path: '/',
    env_vars: ['KEY'],
  };
  for (let count = 0; count < 50; count += 1)
    denied.tell({ sandboxId: made.id, type: 'policy_denied', details: { host: '10.0.0.1', port: 22 } });
  denied.tell({ sandboxId: 'unknown', type: 'policy_denied', details: {} });
  denied.tell({ sandboxId: made.id, type: 'secret_violation', details: violation });
  const events = async (type: string) =>
    (await server.rest('GET', `/events?event_type=${type}&limit=100`)).body.data;
  await waitUntil(async () => (await events('secret_violation')).length > 0);
  const [told] = await events('secret_violation');
  assert.deepEqual(told.payload, { sandbox_id: made.id, name: 'one', ...violation, left_out: 0 });
  assert.equal((await events('policy_denied')).length, 10);
});
