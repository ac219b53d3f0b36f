import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { Question } from '@svc/contract/orchestrator';
import { at, HOST_NETWORKS } from '../testing/host-networks.ts';
import { explain } from './explain.ts';

type Rule = NonNullable<NonNullable<Network['policy']>['rules']>[number];
const rule = (action: Rule['action'], destination: Rule['destination'], more: Partial<Rule> = {}): Rule => ({
  direction: 'egress',
  action,
  destination,
  ...more,
});
const network = (...rules: Rule[]): Network => ({ policy: { rules } });
const to = (host: string, port = 443, protocol: Question['protocol'] = 'tcp'): Question => ({
  host,
  port,
  protocol,
});
const pin = (name: string, address: string) => ({ name, address: at(address) });
const ask = (given: Network | undefined, question: Question, ...known: ReturnType<typeof pin>[]) =>
  explain(given, question, known, HOST_NETWORKS);

test('the first rule that fits an address is named, with its place and the group of the address', () => {
  const given = network(
    rule('allow', { cidr: '10.0.0.0/8' }, { protocols: ['tcp'], ports: [{ start: 443, end: 445 }] }),
    rule('deny', 'any'),
  );
  const { reason, ...allowed } = ask(given, to('10.1.2.3'));
  assert.deepEqual(allowed, {
    action: 'allow',
    decidedBy: 'rule',
    rule: { index: 0, rule: given.policy?.rules?.[0] },
    isByName: false,
    addresses: [{ address: '10.1.2.3', group: 'private', action: 'allow', rule: 0, decidedBy: 'rule' }],
    isAssumed: false,
  });
  assert.equal(
    reason,
    '10.1.2.3:443/tcp is allowed by rule 0, allow:egress@10.0.0.0/8:tcp:443-445, the first that fits',
  );
  assert.equal(ask(given, to('10.1.2.3', 80)).rule?.index, 1);
});

test('the default policy is explained by its own rules, a policy without a rule that fits by default_egress', () => {
  assert.deepEqual(
    [ask(undefined, to('9.9.9.9')).action, ask(undefined, to('9.9.9.9')).rule?.index],
    ['allow', 1],
  );
  const { action, decidedBy, reason } = ask(undefined, to('10.0.0.1'));
  assert.deepEqual([action, decidedBy], ['deny', 'default']);
  assert.match(reason, /denied by default_egress: no rule fits$/);
});

test('a name is judged at each address that the sandbox resolved it to; one that is denied denies it', () => {
  const given = network(rule('deny', { cidr: '9.9.9.0/24' }), rule('allow', { domain: 'a.example' }));
  const one = ask(given, to('A.example.'), pin('a.example', '5.6.7.8'), pin('b.example', '9.9.9.9'));
  assert.deepEqual([one.action, one.rule?.index, one.isByName, one.addresses.length], ['allow', 1, true, 1]);
  const both = ask(given, to('a.example'), pin('a.example', '5.6.7.8'), pin('a.example', '9.9.9.9'));
  assert.deepEqual([both.action, both.rule?.index], ['deny', 0]);
  assert.match(both.reason, /^a\.example:443\/tcp \(at 9\.9\.9\.9\) is denied by rule 0/);
  // An address that the name did not resolve to does not belong to it.
  assert.equal(ask(given, to('5.6.7.8')).action, 'deny');
});

test('a name that is not resolved is judged as a public address that no range is about, and says so', () => {
  const given = network(
    rule('deny', { cidr: '9.0.0.0/8' }),
    rule('allow', { domain_suffix: 'example' }, { ports: [{ start: 443, end: 443 }] }),
  );
  const { action, addresses, isAssumed, reason } = ask(given, to('a.example'));
  assert.deepEqual([action, addresses, isAssumed], ['allow', [], true]);
  assert.match(reason, /has not resolved the name/);
  assert.equal(ask(given, to('a.example', 80)).decidedBy, 'default');
});

test('a denied name stays denied after it was resolved', () => {
  const given = network(rule('deny', { domain: 'bad.example' }), rule('allow', 'any'));
  const answer = ask(given, to('bad.example'), pin('bad.example', '5.6.7.8'));
  assert.deepEqual([answer.action, answer.decidedBy, answer.rule?.index], ['deny', 'name', 0]);
  assert.match(answer.reason, /may not be asked for, by rule 0, deny:egress@domain=bad\.example$/);
});

test('decisions that no policy can change are explained as such', () => {
  const open: Network = { policy: { default_egress: 'allow' } };
  const by = (question: Question, given = open) => {
    const { action, decidedBy } = ask(given, question);
    return [action, decidedBy];
  };
  assert.deepEqual(by(to('9.9.9.9', 853)), ['deny', 'closed_port']);
  assert.deepEqual(by(to('9.9.9.9', 5353, 'udp')), ['deny', 'closed_port']);
  assert.deepEqual(by(to('172.30.0.9')), ['deny', 'out_of_reach']);
  assert.deepEqual(by(to('2606:4700::1')), ['deny', 'out_of_reach']);
  assert.deepEqual(by(to('9.9.9.9', 0, 'icmpv4')), ['allow', 'default']);
  assert.deepEqual(by(to('9.9.9.9', 0, 'icmpv6')), ['deny', 'out_of_reach']);
  assert.deepEqual(by(to('8.8.8.8', 53, 'udp'), network()), ['allow', 'resolver']);
  assert.deepEqual(by(to('9.9.9.9'), { enabled: false }), ['deny', 'no_network']);
});

test('an invalid host and a missing port are refused with the name of the field', () => {
  for (const [question, field] of [
    [to('no host'), 'host'],
    [to('010.1.1.1'), 'host'],
    [to('a.example', 0), 'port'],
  ] as const)
    assert.throws(
      () => ask(undefined, question),
      (error) => PlatformError.is(error, 'invalid_request') && error.details?.['field'] === field,
    );
});

test('incoming connections are judged by ingress rules, at the port inside the sandbox', () => {
  const given: Network = {
    policy: {
      default_ingress: 'deny',
      rules: [
        rule('allow', 'any'),
        {
          ...rule('allow', { cidr: '10.0.0.0/8' }, { ports: [{ start: 80, end: 80 }] }),
          direction: 'ingress',
        },
      ],
    },
  };
  const from = (host: string, port: number) => ask(given, { ...to(host, port), direction: 'ingress' });
  assert.equal(
    from('10.1.1.1', 80).reason,
    'port 80/tcp from 10.1.1.1 is allowed by rule 1, allow:ingress@10.0.0.0/8:any:80, the first that fits',
  );
  assert.equal(
    from('10.1.1.1', 81).reason,
    'port 81/tcp from 10.1.1.1 is denied by default_ingress: no rule fits',
  );
  assert.throws(() => from('a.example', 80), /of the connecting client/);
  assert.equal(ask({ enabled: false }, { ...to('10.1.1.1'), direction: 'ingress' }).decidedBy, 'no_network');
});

test('a port that is read is closed to UDP, unless the sandbox says otherwise', () => {
  const open: Network = { policy: { default_egress: 'allow' }, tls: { enabled: true } };
  const by = (given: Network, port = 443) => ask(given, to('9.9.9.9', port, 'udp')).decidedBy;
  assert.equal(by(open), 'quic');
  assert.equal(by(open, 444), 'default');
  assert.equal(by({ ...open, tls: { enabled: true, block_quic_on_intercept: false } }), 'default');
  assert.equal(by({ ...open, tls: { enabled: false } }), 'default');
});
