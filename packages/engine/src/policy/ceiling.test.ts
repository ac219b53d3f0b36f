import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkPolicy } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import fc from 'fast-check';
import { IPV6_PEERS, PEERS, policies } from '../testing/random-policies.ts';
import { referenceAction } from '../testing/reference-model.ts';
import { at, HOST_NETWORKS } from '../testing/host-networks.ts';
import { ceilingsOf, readCeiling, writeCeiling } from './ceiling.ts';
import { checkCeiling } from './check-ceiling.ts';
import { decide } from './decide.ts';
import { explain } from './explain.ts';
import { mayAsk } from './nameservers.ts';
import { resolvePolicy } from './resolve-policy.ts';

const WORDS = ['public', 'private', 'host', 'metadata', 'link_local', '10.0.0.0/8', '93.184.215.0/24'];
const words = fc.subarray([...WORDS, '169.254.0.0/16', '1.1.1.1/32', 'fd00:ec2::/32', '2a00:77::/32']);
const PLACE = {
  gateway: '172.30.0.1',
  own: ['192.168.7.5', '8.8.4.4'],
  neighbours: ['192.168.7.', '8.8.4.'],
  sandboxes: '172.30.',
};
const flows = fc.record({
  address: fc.constantFrom(...PEERS, ...IPV6_PEERS),
  port: fc.constantFrom(22, 53, 80, 443),
  protocol: fc.constantFrom('tcp' as const, 'udp' as const),
  names: fc.subarray(['example.com', 'other.org']),
});

/** A ceiling says what a policy of nothing but allowing rules says. */
function openedBy(allowed: readonly string[]): NetworkPolicy {
  const toDestination = (word: string) => (word.includes('/') ? { cidr: writtenOut(word) } : { group: word });
  const rules = allowed.map((word) => ({
    direction: 'egress' as const,
    action: 'allow' as const,
    destination: toDestination(word) as { readonly group: 'public' },
  }));
  return { default_egress: 'deny', rules };
}

/** The reference model compares texts. */
function writtenOut(range: string): string {
  return range
    .replace('fd00:ec2::/32', 'fd00:ec2:0:0:0:0:0:0/32')
    .replace('2a00:77::/32', '2a00:77:0:0:0:0:0:0/32');
}

test('no address beyond a ceiling is ever allowed, and below it the policy decides, for random policies and ceilings', () => {
  fc.assert(
    fc.property(policies, words, words, flows, (policy, one, other, { address, ...flow }) => {
      const ceilings = [one, other].flatMap((list) => ceilingsOf(list));
      const asked = { ...flow, direction: 'egress', address: at(address) } as const;
      const { action } = decide(resolvePolicy({ policy }, ceilings), asked, HOST_NETWORKS);
      const bare = decide(resolvePolicy({ policy }), asked, HOST_NETWORKS).action;
      const isBelow = [one, other].every(
        (list) =>
          referenceAction(openedBy(list), { ...flow, direction: 'egress', address }, PLACE) === 'allow',
      );
      assert.equal(action, isBelow ? bare : 'deny');
      const nameserver = { address, port: 53 };
      if (mayAsk(resolvePolicy({ policy }, ceilings), nameserver, 'udp', HOST_NETWORKS)) assert.ok(isBelow);
    }),
    { numRuns: 20_000 },
  );
});

test('a policy that is not refused opens nothing beyond the ceiling but what only the host knows', () => {
  const nowhere = { ...HOST_NETWORKS, hostAddresses: [], neighbours: [] };
  let accepted = 0;
  fc.assert(
    fc.property(policies, words, flows, (policy, list, { address, ...flow }) => {
      const ceilings = ceilingsOf(list);
      try {
        checkCeiling({ policy }, ceilings);
      } catch (error) {
        assert.ok(PlatformError.is(error, 'network_ceiling_exceeded'), String(error));
        return;
      }
      accepted += 1;
      const asked = { ...flow, names: [], direction: 'egress', address: at(address) } as const;
      // Port 53 of the host is the resolver, wherever it was meant for.
      if (flow.port === 53) return;
      const held = decide(resolvePolicy({ policy }, ceilings), asked, nowhere).action;
      assert.equal(held, decide(resolvePolicy({ policy }), asked, nowhere).action, JSON.stringify(policy));
    }),
    { numRuns: 20_000 },
  );
  assert.ok(accepted > 1000, `${accepted} were accepted`);
});

test('a rule beyond a ceiling is refused by its name, and the default policy is always accepted', () => {
  const refusal = (policy: NetworkPolicy, ...list: readonly string[]) => {
    try {
      checkCeiling({ policy }, ceilingsOf(list));
      return 'accepted';
    } catch (error) {
      assert.ok(PlatformError.is(error, 'network_ceiling_exceeded'), String(error));
      assert.deepEqual(error.details?.['ceiling'], list);
      return error.details['field'];
    }
  };
  const allow = (destination: object) => ({ direction: 'egress', action: 'allow', destination }) as const;
  const rules = (...list: readonly object[]) => ({ rules: list }) as NetworkPolicy;
  assert.equal(refusal({ default_egress: 'allow' }, 'public'), 'network.policy.default_egress');
  assert.equal(refusal({ default_egress: 'allow' }, 'all'), 'accepted');
  const open = allow({ group: 'public' });
  for (const destination of [
    { group: 'private' },
    { group: 'host' },
    { group: 'metadata' },
    { cidr: '10.0.0.0/8' },
    { cidr: '0.0.0.0/0' },
    { cidr: '169.254.169.254' },
    { cidr: '8.0.0.0/5' },
    { cidr: '192.0.2.0/24' },
    { cidr: '::/0' },
  ])
    assert.equal(refusal(rules(open, allow(destination)), 'public'), 'network.policy.rules[1]');
  assert.equal(refusal(rules({ ...open, destination: 'any' }), 'public'), 'network.policy.rules[0]');
  assert.equal(refusal(rules({ ...allow({ group: 'private' }), action: 'deny' }), 'public'), 'accepted');
  assert.equal(
    refusal(rules({ ...allow({ group: 'private' }), direction: 'ingress' }), 'public'),
    'accepted',
  );
  assert.equal(
    refusal(rules(allow({ domain: 'example.com' }), allow({ cidr: '8.8.8.0/24' })), 'public'),
    'accepted',
  );
  assert.equal(refusal(rules(allow({ cidr: '10.8.1.0/24' })), 'public', '10.8.0.0/16'), 'accepted');
  assert.equal(
    refusal(rules(allow({ cidr: '10.0.0.0/8' })), 'public', '10.8.0.0/16'),
    'network.policy.rules[0]',
  );
  checkCeiling({}, ceilingsOf(['10.0.0.0/8']));
});

test('an explanation says that the operator lets no sandbox go there', () => {
  const question = { host: '10.0.0.1', port: 80, protocol: 'tcp' } as const;
  const network = { policy: { default_egress: 'allow' as const } };
  const explained = explain(network, question, [], HOST_NETWORKS, ceilingsOf(['public']));
  assert.deepEqual([explained.action, explained.decidedBy, explained.rule], ['deny', 'ceiling', null]);
  assert.match(
    explained.reason,
    /^10\.0\.0\.1:80\/tcp is denied: it is beyond what the operator .*--network-ceiling/,
  );
});

test('a formatted ceiling parses to the same ceiling', () => {
  assert.deepEqual(readCeiling('link-local, 10.8.0.0/16,192.0.2.7'), [
    'public',
    'link_local',
    '10.8.0.0/16',
    '192.0.2.7/32',
  ]);
  assert.deepEqual(readCeiling('none'), []);
  fc.assert(fc.property(words, (list) => assert.equal(readCeiling(writeCeiling(list)).length, list.length)));
  for (const text of ['', 'all,private', 'loopback', '10.8.0.1/16', 'example.com'])
    assert.throws(() => readCeiling(text), /is no part of a network ceiling/, text);
});
