import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkDecision, NetworkReport } from '../policy/network-decision.ts';
import { ToldDecisions } from './told-decisions.ts';

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

function listen() {
  const heard: (NetworkReport & { readonly client: string })[] = [];
  const told = new ToldDecisions((client, report) => heard.push({ client, ...report }));
  const of = (client: string) => heard.filter((report) => report.client === client);
  return { told, heard, of };
}

test('a sandbox that is denied again and again is told of some times a second; the rest is counted, whoever else asks', () => {
  const { told, of } = listen();
  for (let index = 0; index < 500; index++) told.denied('loud', question(`${index}.example`));
  told.denied('quiet', question('one.example'));
  assert.ok(of('loud').length >= 10 && of('loud').length < 250, `${of('loud').length}`);
  assert.equal(of('quiet').length, 1);
  told.denied('loud', question('last.example'), true);
  const counted = of('loud').reduce((sum, { decisions, leftOut }) => sum + decisions.length + leftOut, 0);
  assert.equal(counted, 501, 'nothing is lost uncounted, and what is needed is told');
});

test('what is allowed is told once in a while, and does not take the place of what is denied', () => {
  const { told, heard } = listen();
  const allowed = { ...question('a.example'), verdict: 'allow' } as const;
  for (let index = 0; index < 500; index++) told.allowed('one', allowed);
  assert.equal(heard.length, 1);
  for (let index = 0; index < 500; index++) told.allowed('one', { ...allowed, host: `${index}.example` });
  assert.ok(heard.length < 250, `${heard.length}`);
  const before = heard.length;
  told.denied('one', question('b.example'));
  assert.equal(heard.length, before + 1);
});

test('who has the address of a sandbox that is gone hears nothing of it', () => {
  const { told, of } = listen();
  for (let index = 0; index < 500; index++) told.denied('one', question(`${index}.example`));
  told.forget('one');
  told.denied('one', question('next.example'));
  assert.deepEqual(of('one').at(-1)?.leftOut, 0);
});
