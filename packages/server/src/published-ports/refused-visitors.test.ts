import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { RefusedVisitors as Refused } from '@svc/engine/client';
import { pino } from 'pino';
import { ingressOf } from './ingress.ts';
import { RefusedVisitors } from './refused-visitors.ts';

test('who is not let in is told of with the rule, and a flood as a few and a number', async () => {
  const told: (Refused & { readonly id: string })[] = [];
  const visitors = new RefusedVisitors(
    async (id, refused) => void told.push({ id, ...refused }),
    pino({ level: 'silent' }),
  );
  const rules = [{ direction: 'ingress', action: 'deny', destination: { cidr: '10.0.0.0/8' } }] as const;
  const mayEnter = ingressOf({ policy: { rules: [...rules], default_ingress: 'deny' } }, (visitor) =>
    visitors.note('one', visitor),
  );
  for (let count = 0; count < 3; count++) assert.equal(mayEnter('10.0.0.1', 80, 'tcp'), false);
  assert.equal(mayEnter('203.0.113.7', 53, 'udp'), false);
  for (let host = 0; host < 200; host++)
    visitors.note('other', { address: `10.0.1.${host}`, port: 80, protocol: 'tcp', rule: 0 });
  await waitUntil(() => told.length === 2);
  assert.deepEqual(
    told.find(({ id }) => id === 'one'),
    {
      id: 'one',
      visitors: [
        { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: 0, count: 3 },
        { address: '203.0.113.7', port: 53, protocol: 'udp', rule: null, count: 1 },
      ],
      leftOut: 0,
    },
  );
  const flood = told.find(({ id }) => id === 'other');
  assert.deepEqual([flood?.visitors.length, flood?.leftOut], [16, 184]);
});

test('that the engine is away hurts nobody', async () => {
  let asked = 0;
  const visitors = new RefusedVisitors(
    () => {
      asked += 1;
      return Promise.reject(new Error('away'));
    },
    pino({ level: 'silent' }),
  );
  visitors.note('one', { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: null });
  await waitUntil(() => asked === 1);
  visitors.note('one', { address: '10.0.0.1', port: 80, protocol: 'tcp', rule: null });
  await waitUntil(() => asked === 2);
});
