import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SandboxSpec } from '@svc/contract';
import { checkSupported } from './check-supported.ts';

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
  checkSupported(withPolicy({ default_egress: 'deny', default_ingress: 'allow', rules }));
  checkSupported(withPolicy({ default_egress: 'deny', default_ingress: 'deny', rules: [] }));
  checkSupported({ image });
  // What a published client sends when nobody asked for anything.
  checkSupported({ image, network: { enabled: true, strict: false, max_connections: null } });
});

const refused: readonly (readonly [title: string, spec: SandboxSpec, field: string])[] = [
  [
    'a rule that opens private addresses',
    withPolicy({ rules: [{ direction: 'egress', destination: { cidr: '10.0.0.0/8' }, action: 'allow' }] }),
    'network.policy.rules',
  ],
  ['egress allowed by default', withPolicy({ default_egress: 'allow' }), 'network.policy.default_egress'],
  [
    'a secret',
    {
      image,
      network: {
        secrets: { entries: [{ env_var: 'K', placeholder: '$K', allowed_hosts: [{ type: 'any' }] }] },
      },
    },
    'network.secrets',
  ],
  ['rules that hold for names alone', { image, network: { strict: true } }, 'network.strict'],
  ['a limit on connections', { image, network: { max_connections: 16 } }, 'network.max_connections'],
  ['an init system', { image, init: { cmd: 'auto' } }, 'init'],
];

for (const [title, spec, field] of refused) {
  test(`${title} is refused by name instead of being ignored`, () => {
    assert.throws(
      () => checkSupported(spec),
      (error: Error) => error.message.startsWith(`${field}:`),
    );
  });
}
