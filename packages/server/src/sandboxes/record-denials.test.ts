import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import pino from 'pino';
import { body, startHealthy } from '../testing/sandboxes.ts';
import { recordDenials } from './record-denials.ts';

test('denials of a sandbox are in the audit log: the first ten of each kind in a minute', async (t) => {
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
    denied.report({ sandboxId: made.id, type: 'policy_denied', details: { host: '10.0.0.1', port: 22 } });
  denied.report({ sandboxId: 'unknown', type: 'policy_denied', details: {} });
  denied.report({ sandboxId: made.id, type: 'secret_violation', details: violation });
  const events = async (type: string) =>
    (await server.rest('GET', `/events?event_type=${type}&limit=100`)).body.data;
  await waitUntil(async () => (await events('secret_violation')).length > 0);
  const [reported] = await events('secret_violation');
  assert.deepEqual(reported.payload, { sandbox_id: made.id, name: 'one', ...violation, left_out: 0 });
  assert.equal((await events('policy_denied')).length, 10);
});

test('servers that share a database record the same denial once', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const { database, orchestrator } = server;
  const over = new AbortController();
  const another = recordDenials({
    database,
    orchestrator: { denials: (signal) => orchestrator.denied.read(signal) },
    logger: pino({ level: 'silent' }),
  });
  const ended = another.run(over.signal);
  await waitUntil(() => orchestrator.denied.listeners === 2);
  for (const port of [22, 23, 24])
    orchestrator.denied.report({ sandboxId: made.id, type: 'policy_denied', details: { port } });
  orchestrator.denied.report({ sandboxId: made.id, type: 'secret_violation', details: {} });
  const ports = async (type: string) =>
    (await server.rest('GET', `/events?event_type=${type}&limit=100`)).body.data.map(
      ({ payload }: { payload: { port?: number } }) => payload.port,
    );
  // Each server handles denials in order, so both have handled the earlier ones by then.
  await waitUntil(async () => (await ports('secret_violation')).length > 0);
  over.abort();
  await ended;
  assert.deepEqual((await ports('policy_denied')).toSorted(), [22, 23, 24]);
});
