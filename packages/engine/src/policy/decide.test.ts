import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import fc from 'fast-check';
import { decide, decideName, mayAnswer, rulesFor, type Flow } from './decide.ts';
import { classify } from './groups.ts';
import { PEERS, policies, NAMES } from '../testing/random-policies.ts';
import { referenceAction, referenceGroup, referenceNameAction } from '../testing/reference-model.ts';
import { at, HOST_NETWORKS } from '../testing/host-networks.ts';
import { resolvePolicy } from './resolve-policy.ts';

const PLACE = {
  gateway: '172.30.0.1',
  own: ['192.168.7.5', '8.8.4.4'],
  neighbours: ['192.168.7.', '8.8.4.'],
  sandboxes: '172.30.',
};

function flow(address: string, given: Partial<Flow> = {}): Flow {
  return { direction: 'egress', address: at(address), port: 443, protocol: 'tcp', names: [], ...given };
}

const flows = fc.record({
  direction: fc.constantFrom('egress', 'ingress'),
  address: fc.constantFrom(...PEERS),
  port: fc.constantFrom(0, 22, 53, 80, 443, 8080, 65_535),
  protocol: fc.constantFrom('tcp', 'udp', 'icmpv4'),
  names: fc.subarray(NAMES),
  sni: fc.option(fc.constantFrom(...NAMES), { nil: undefined }),
} as const);

test('every address has the group that the reference model gives it', () => {
  for (const peer of PEERS)
    assert.equal(classify(at(peer), HOST_NETWORKS), referenceGroup(peer, PLACE), peer);
});

test('for random policies and flows the decision is that of the reference model (5,000)', () => {
  fc.assert(
    fc.property(policies, fc.boolean(), flows, (policy, strict, { address, sni, ...rest }) => {
      const resolved = resolvePolicy({ policy, strict });
      const { action } = decide(
        resolved,
        { ...rest, address: at(address), ...(sni === undefined ? {} : { sni }) },
        HOST_NETWORKS,
      );
      assert.equal(action, referenceAction(policy, { ...rest, address, sni, strict }, PLACE));
    }),
    { numRuns: 5000 },
  );
});

test('for random policies and names the decision is that of the reference model (5,000)', () => {
  fc.assert(
    fc.property(
      policies,
      fc.constantFrom(...NAMES),
      fc.constantFrom('tcp', 'udp'),
      (policy, name, protocol) => {
        const { action } = decideName(resolvePolicy({ policy }), name.toUpperCase(), protocol);
        assert.equal(action, referenceNameAction(policy, name, protocol));
      },
    ),
    { numRuns: 5000 },
  );
});

test('no name that a connection could say changes the decision of one that needs none (5,000)', () => {
  fc.assert(
    fc.property(
      policies,
      flows,
      fc.constantFrom(...NAMES),
      (policy, { address, direction, port, protocol, names }, sni) => {
        const resolved = resolvePolicy({ policy });
        const blind = { direction, port, protocol, names, address: at(address) };
        const decision = decide(resolved, blind, HOST_NETWORKS);
        if (decision.needsName || protocol !== 'tcp') return;
        assert.equal(decide(resolved, { ...blind, sni }, HOST_NETWORKS).action, decision.action);
      },
    ),
    { numRuns: 5000 },
  );
});

test('without a policy names, public addresses and connections through published ports are allowed', () => {
  const policy = resolvePolicy(undefined);
  const action = (given: Flow) => decide(policy, given, HOST_NETWORKS).action;
  assert.equal(action(flow('93.184.215.14')), 'allow');
  assert.equal(action(flow('172.30.0.1', { port: 53, protocol: 'udp' })), 'allow');
  for (const address of [
    '172.30.0.1',
    '10.0.0.1',
    '169.254.169.254',
    '172.30.0.9',
    '8.8.4.7',
    '224.0.0.1',
    '0.0.0.0',
  ])
    assert.equal(action(flow(address)), 'deny', address);
  assert.equal(action(flow('198.51.100.1', { direction: 'ingress' })), 'allow');
  assert.equal(decideName(policy, 'example.com', 'udp').action, 'allow');
});

test('a policy without defaults denies both ways, and a network that is off denies all', () => {
  for (const network of [{ policy: {} }, { enabled: false }] satisfies Network[]) {
    const policy = resolvePolicy(network);
    assert.equal(decide(policy, flow('93.184.215.14'), HOST_NETWORKS).action, 'deny');
    assert.equal(
      decide(policy, flow('93.184.215.14', { direction: 'ingress' }), HOST_NETWORKS).action,
      'deny',
    );
    assert.equal(decideName(policy, 'example.com', 'udp').action, 'deny');
  }
});

test('no policy opens the ports of other name services', () => {
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: '0.0.0.0/0' } } as const;
  const policy = resolvePolicy({ policy: { default_egress: 'allow', rules: [rule] } });
  const action = (protocol: 'tcp' | 'udp', port: number) =>
    decide(policy, flow('93.184.215.14', { protocol, port }), HOST_NETWORKS).action;
  for (const port of [137, 138, 853, 5353, 5355]) assert.equal(action('udp', port), 'deny', `${port}`);
  assert.equal(action('tcp', 853), 'deny');
  assert.deepEqual([action('tcp', 5353), action('udp', 443)], ['allow', 'allow']);
});

test('no policy opens the address of another sandbox', () => {
  const policy = resolvePolicy({
    policy: {
      default_egress: 'allow',
      rules: [{ direction: 'any', action: 'allow', destination: { cidr: '172.30.0.0/16' } }],
    },
  });
  assert.deepEqual(decide(policy, flow('172.30.0.9'), HOST_NETWORKS), {
    action: 'deny',
    rule: null,
    needsName: false,
  });
});

test('answers lead to private addresses only where a rule about addresses alone allows them', () => {
  const may = (network: Network, address: string) =>
    mayAnswer(resolvePolicy(network), at(address), HOST_NETWORKS);
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: '10.0.0.0/8' } } as const;
  assert.equal(may({}, '93.184.215.14'), true);
  assert.equal(may({}, '10.0.0.1'), false);
  assert.equal(may({ dns: { rebind_protection: false } }, '10.0.0.1'), true);
  assert.equal(may({ policy: { rules: [rule] } }, '10.0.0.1'), true);
  assert.equal(may({ policy: { rules: [rule] } }, '::ffff:10.0.0.1'), true);
  assert.equal(
    may({ policy: { rules: [{ ...rule, ports: [{ start: 1, end: 65_535 }] }] } }, '10.0.0.1'),
    false,
  );
  assert.equal(
    may({ policy: { default_egress: 'allow', rules: [{ ...rule, destination: 'any' }] } }, '10.0.0.1'),
    false,
  );
  assert.equal(may({ policy: { rules: [{ ...rule, action: 'deny' }, rule] } }, '10.0.0.1'), false);
  assert.equal(
    may({ policy: { rules: [{ ...rule, destination: { group: 'private' } }] } }, '127.0.0.1'),
    false,
  );
});

test('a suffix is aligned to labels and holds for the name itself', () => {
  const policy = resolvePolicy({
    policy: {
      rules: [
        { direction: 'egress', action: 'allow', destination: { domain_suffix: 'Example.com.' } },
        { direction: 'any', action: 'allow', destination: { domain: 'a.example.com' } },
        { direction: 'ingress', action: 'allow', destination: { domain_suffix: 'com' } },
      ],
    },
  });
  assert.deepEqual(rulesFor(policy, 'A.example.com'), [0, 1]);
  assert.deepEqual(rulesFor(policy, 'example.com'), [0]);
  assert.deepEqual(rulesFor(policy, 'badexample.com'), []);
});

test('invalid policies are refused with the name of the field', () => {
  const refused: readonly [Network, string][] = [
    [withDestination({ cidr: '10.0.0.1/8' }), 'network.policy.rules[0].destination.cidr'],
    [withDestination({ cidr: 'example.com' }), 'network.policy.rules[0].destination.cidr'],
    [withDestination({ domain: '*.example.com' }), 'network.policy.rules[0].destination.domain'],
    [withDestination({ domain: '10.0.0.1' }), 'network.policy.rules[0].destination.domain'],
    [withDestination({ domain_suffix: '' }), 'network.policy.rules[0].destination.domain_suffix'],
    [withDestination('any', [{ start: 2, end: 1 }]), 'network.policy.rules[0].ports[0]'],
    [{ dns: { nameservers: ['resolver.example'] } }, 'network.dns.nameservers[0]'],
    [{ dns: { nameservers: ['192.0.2.1:0'] } }, 'network.dns.nameservers[0]'],
  ];
  for (const [network, field] of refused)
    assert.throws(
      () => resolvePolicy(network),
      (error) => PlatformError.is(error, 'invalid_sandbox_config') && error.message.startsWith(`${field}: `),
      field,
    );
});

function withDestination(
  destination: NonNullable<NonNullable<Network['policy']>['rules']>[number]['destination'],
  ports: { start: number; end: number }[] = [],
): Network {
  return { policy: { rules: [{ direction: 'egress', action: 'allow', destination, ports }] } };
}
