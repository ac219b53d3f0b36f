import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkDecision } from '@svc/contract/orchestrator';
import { parseAddress } from '../policy/address.ts';
import type { EgressReport } from './egress-messages.ts';
import { readReport } from './read-report.ts';
import { writeReport } from './write-report.ts';

const decision: NetworkDecision = {
  kind: 'http',
  verdict: 'deny',
  host: 'a.example',
  address: '2001:db8::1',
  port: 443,
  protocol: 'tcp',
  decidedBy: 'secret',
  rule: null,
  secret: { action: 'block_and_terminate', method: 'GET', path: '/', envVars: ['KEY'] },
};
const pins = ['192.0.2.1', '2001:db8::1'].map((text) => {
  const address = parseAddress(text);
  assert.ok(address);
  return { name: 'a.example', address, seconds: 30 };
});

const REPORTS: readonly EgressReport[] = [
  { kind: 'listening', ports: { ipv4: 4000, ipv6: 4001 } },
  { kind: 'listening', ports: { ipv4: 4000, ipv6: null } },
  { kind: 'failed', reason: 'Error: no' },
  { kind: 'done', id: 1, pins: [] },
  { kind: 'done', id: 1, pins },
  { kind: 'pin', id: 7, client: '192.0.2.2', pins },
  { kind: 'decided', client: '192.0.2.2', report: { decisions: [{ decision, count: 1 }], leftOut: 3 } },
];

test('each report arrives as it was sent', () => {
  for (const report of REPORTS) assert.deepEqual(readReport(writeReport(report)), report);
});

test('a report with a missing field, or one of another type, is refused', () => {
  for (const report of REPORTS) {
    const parts = JSON.parse(writeReport(report).toString()) as Record<string, unknown>;
    for (const changed of changesOf(parts))
      assert.throws(() => readReport(Buffer.from(JSON.stringify(changed))), JSON.stringify(changed));
  }
});

/** Each thing once in place of what it is not; a list may be empty, and a decision without a secret. */
function* changesOf(value: unknown): Generator {
  if (typeof value === 'object' && value !== null)
    for (const [key, part] of Object.entries(value))
      for (const changed of changesOf(part)) {
        if (changed === undefined && (Array.isArray(value) || key === 'secret')) continue;
        yield Array.isArray(value)
          ? value.map((each: unknown, index) => (String(index) === key ? changed : each))
          : { ...value, [key]: changed };
      }
  yield undefined;
  yield { a: 1 };
}
