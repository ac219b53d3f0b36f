import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RefusedConnections as Refused } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { ingressOf } from './ingress.ts';
import { RefusedConnectionLog } from './refused-connections.ts';

test('refused connections are reported with their rule, and a flood as a few and a number', async () => {
  const reported: (Refused & { readonly id: string })[] = [];
  const log = new RefusedConnectionLog(
    async (id, refused) => void reported.push({ id, ...refused }),
    pino({ level: 'silent' }),
  );
  const rules = [{ direction: 'ingress', action: 'deny', destination: { cidr: '10.0.0.0/8' } }] as const;
  const mayEnter = ingressOf({ policy: { rules: [...rules], default_ingress: 'deny' } }, (connection) =>
    log.note('one', connection),
  );
  for (let count = 0; count < 3; count++) assert.equal(mayEnter('10.0.0.1', 80, 'tcp'), false);
  assert.equal(mayEnter('203.0.113.7', 53, 'udp'), false);
  for (let host = 0; host < 200; host++)
    log.note('other', { address: `10.0.1.${host}`, port: 80, protocol: 'tcp', rule: 0 });
  await waitUntil(() => reported.length === 2);
  assert.deepEqual(
    reported.find(({ id }) => id === 'one'),
    {
      id: 'one',
      connections: [
        { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: 0, count: 3 },
        { address: '203.0.113.7', port: 53, protocol: 'udp', rule: null, count: 1 },
      ],
      leftOut: 0,
    },
  );
  const flood = reported.find(({ id }) => id === 'other');
  assert.deepEqual([flood?.connections.length, flood?.leftOut], [16, 184]);
});

test('an engine that is away does not make recording fail', async () => {
  let asked = 0;
  const log = new RefusedConnectionLog(
    () => {
      asked += 1;
      return Promise.reject(new Error('away'));
    },
    pino({ level: 'silent' }),
  );
  log.note('one', { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: null });
  await waitUntil(() => asked === 1);
  log.note('one', { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: null });
  await waitUntil(() => asked === 2);
});
