import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkDecision } from '@svc/sdk';
import { latestDecisions } from './latest-decisions.ts';

const decision = (host: string, count: number, cursor: string): NetworkDecision => ({
  cursor,
  first_ts: '2026-01-01T00:00:00.000Z',
  ts: '2026-01-01T00:00:01.000Z',
  count,
  kind: 'dns',
  verdict: 'deny',
  host,
  address: null,
  port: null,
  protocol: 'udp',
  decided_by: 'default',
  rule: null,
  reason: 'nothing allows it',
  secret: null,
});

test('repeated decisions are listed once, with the latest count, newest first', () => {
  const entries = [decision('a', 1, '1'), decision('b', 1, '2'), decision('a', 5, '3')];
  assert.deepEqual(
    latestDecisions(entries).map(({ host, count }) => [host, count]),
    [
      ['a', 5],
      ['b', 1],
    ],
  );
});
