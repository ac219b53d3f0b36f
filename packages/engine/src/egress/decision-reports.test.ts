import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkDecision } from '@svc/contract/orchestrator';
import type { NetworkReport } from '../policy/network-decision.ts';
import { DecisionReports } from './decision-reports.ts';

const question = (host: string): NetworkDecision => ({
  kind: 'dns',
  verdict: 'deny',
  host,
  address: null,
  port: null,
  protocol: 'udp',
  decidedBy: 'name',
  rule: 0,
});

function listen(scopeOf?: (client: string) => string) {
  const heard: (NetworkReport & { readonly client: string })[] = [];
  const reports = new DecisionReports((client, report) => heard.push({ client, ...report }), scopeOf);
  const of = (client: string) => heard.filter((report) => report.client === client);
  return { reports, heard, of };
}

test('repeated denials of one sandbox are reported at a limited rate, and the rest is counted', () => {
  const { reports, of } = listen();
  for (let index = 0; index < 500; index++) reports.denied('loud', question(`${index}.example`));
  reports.denied('quiet', question('one.example'));
  assert.ok(of('loud').length >= 10 && of('loud').length < 250, `${of('loud').length}`);
  assert.equal(of('quiet').length, 1);
  reports.denied('loud', question('last.example'), true);
  const counted = of('loud').reduce((sum, { decisions, leftOut }) => sum + decisions.length + leftOut, 0);
  assert.equal(counted, 501, 'every denial is counted, and a needed one is reported');
});

test('allowed traffic is sampled, and does not use up the rate of denials', () => {
  const { reports, heard } = listen();
  const allowed = { ...question('a.example'), verdict: 'allow' } as const;
  for (let index = 0; index < 500; index++) reports.allowed('one', allowed);
  assert.equal(heard.length, 1);
  for (let index = 0; index < 500; index++) reports.allowed('one', { ...allowed, host: `${index}.example` });
  assert.ok(heard.length < 250, `${heard.length}`);
  const before = heard.length;
  reports.denied('one', question('b.example'));
  assert.equal(heard.length, before + 1);
});

test('a new sandbox with the address of an earlier one starts with empty counters', () => {
  const { reports, of } = listen();
  for (let index = 0; index < 500; index++) reports.denied('one', question(`${index}.example`));
  reports.forget('one');
  reports.denied('one', question('next.example'));
  assert.deepEqual(of('one').at(-1)?.leftOut, 0);
});

test('sandboxes of one scope share a report rate, and those of another scope are not affected', () => {
  const { reports, heard, of } = listen((client) => client.split(' ')[0] ?? '');
  for (let sandbox = 0; sandbox < 1000; sandbox++)
    for (let index = 0; index < 10; index++) reports.denied(`loud ${sandbox}`, question(`${index}.example`));
  assert.ok(heard.length >= 200 && heard.length < 5000, `${heard.length}`);
  reports.denied('quiet 1', question('one.example'));
  assert.equal(of('quiet 1').length, 1);
  reports.denied('loud 999', question('last.example'), true);
  assert.equal(of('loud 999').at(-1)?.decisions[0]?.decision.host, 'last.example');
});

test('names and paths that a sandbox chose are truncated in reports', () => {
  const { reports, heard } = listen();
  const long = 'a'.repeat(60_000);
  const secret = { action: 'block_and_log', method: long, path: long, envVars: ['KEY'] };
  reports.denied('one', { ...question(long), secret });
  assert.ok(JSON.stringify(heard).length < 4000);
});
