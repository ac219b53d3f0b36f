import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { checkSupported } from './check-supported.ts';

const check = (spec: SandboxSpec, hasIpv6 = false) => checkSupported(spec, { hasIpv6 });
const image = { type: 'oci', reference: 'x' } as const;
type Policy = NonNullable<NonNullable<SandboxSpec['network']>['policy']>;

const DNS = {
  direction: 'egress',
  destination: { group: 'host' },
  protocols: ['udp', 'tcp'],
  ports: [{ start: 53, end: 53 }],
  action: 'allow',
} as const;
const PUBLIC = {
  direction: 'egress',
  destination: { group: 'public' },
  protocols: [],
  ports: [],
  action: 'allow',
} as const;

function withPolicy(policy: Policy): SandboxSpec {
  return { image, network: { policy } };
}

test('the default policy, spelled out as clients send it, and deny-all can be enforced', () => {
  const rules = [
    { ...DNS, protocols: [...DNS.protocols], ports: [...DNS.ports] },
    { ...PUBLIC, protocols: [], ports: [] },
  ];
  check(withPolicy({ default_egress: 'deny', default_ingress: 'allow', rules }));
  check(withPolicy({ default_egress: 'deny', default_ingress: 'deny', rules: [] }));
  check({ image });
  // What a published client sends by default.
  check({ image, network: { enabled: true, strict: false, max_connections: null } });
});

test('rules about addresses, groups and names, limits and resolvers of its own can be enforced', () => {
  const allow = { direction: 'egress', action: 'allow' } as const;
  check({
    image,
    network: {
      policy: {
        default_egress: 'allow',
        rules: [
          { ...allow, destination: { cidr: '10.0.0.0/8' } },
          { ...allow, destination: { domain_suffix: 'example.com' } },
          { ...allow, destination: { group: 'metadata' }, direction: 'any' },
          { ...allow, action: 'deny', destination: { cidr: '2001:db8::/32' } },
        ],
      },
      max_connections: 16,
      dns: { nameservers: ['192.0.2.1'], query_timeout_ms: 100, rebind_protection: false },
    },
  });
  check({ image, network: { strict: true } });
});

function allowing(rule: object, network: object = {}): SandboxSpec {
  const whole = { direction: 'egress', action: 'allow', destination: 'any', ...rule } as const;
  return { image, network: { policy: { rules: [whole] }, ...network } };
}

function withSecret(changes: object): SandboxSpec {
  const entry = { env_var: 'K', placeholder: '$K', allowed_hosts: [{ type: 'any' as const }], ...changes };
  return { image, network: { secrets: { entries: [entry] } } };
}

const RULE = 'network.policy.rules[0]';
const refused: readonly (readonly [title: string, spec: SandboxSpec, field: string])[] = [
  [
    'a rule that opens IPv6',
    allowing({ destination: { cidr: '2001:db8::/32' } }),
    `${RULE}.destination.cidr`,
  ],
  [
    'a rule that opens multicast',
    allowing({ destination: { group: 'multicast' } }),
    `${RULE}.destination.group`,
  ],
  ['a rule that opens IPv6 pings', allowing({ protocols: ['icmpv6'] }), `${RULE}.protocols`],
  ['a range that is none', allowing({ destination: { cidr: '10.0.0.1/8' } }), `${RULE}.destination.cidr`],
  [
    'a certificate by its path',
    { image, network: { tls: { upstream_ca_cert: ['/etc/ca.pem'] } } },
    'network.tls.upstream_ca_cert[0]',
  ],
  [
    'an authority of the caller',
    { image, network: { tls: { intercept_ca: { cert_path: '/ca.pem', key_path: '/ca.key' } } } },
    'network.tls.intercept_ca',
  ],
  ['a value in a spec', withSecret({ value: 'v' }), 'network.secrets.entries[0].value'],
  ['an init system', { image, init: { cmd: 'auto' } }, 'init'],
];

test('rules about IPv6 are taken where sandboxes have it', () => {
  check(allowing({ destination: { cidr: '2001:db8::/32' } }), true);
  check(allowing({ protocols: ['icmpv6'] }), true);
});

for (const [title, spec, field] of refused) {
  test(`${title} is refused by name instead of being ignored`, () => {
    assert.throws(
      () => check(spec),
      (error: Error) => error.message.startsWith(`${field}:`),
    );
  });
}

test('in a volume what is literal there anyway cannot be chosen, and what holds there can', () => {
  const places = [
    { type: 'bind', host: 'data', guest: '/data' },
    { type: 'named', name: 'data', guest: '/data' },
  ] as const;
  for (const place of places) {
    check({
      image,
      mounts: [place, { ...place, stat_virtualization: 'strict', host_permissions: 'private' }],
    });
    check({ image, mounts: [{ ...place, stat_virtualization: 'relaxed' }] });
    for (const [name, wish] of [
      ['stat_virtualization', { stat_virtualization: 'off' }],
      ['host_permissions', { host_permissions: 'mirror' }],
    ] as const)
      assert.throws(() => check({ image, mounts: [{ ...place, ...wish }] }), {
        code: 'invalid_sandbox_config',
        message: new RegExp(`^mounts\\[0\\]\\.${name}: .*absolute path`),
      });
  }
  const bind = { type: 'bind', host: '/shared/data', guest: '/data' } as const;
  check({ image, mounts: [{ ...bind, stat_virtualization: 'off' }] });
  check({ image, mounts: [{ ...bind, host_permissions: 'mirror' }] });
});
