import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '../errors.ts';
import { checkSpec } from './check-spec.ts';
import { isUnlimited, toU64 } from './unlimited.ts';

const image = { type: 'oci', reference: 'python' };

function refusal(spec: unknown): string {
  try {
    checkSpec(spec);
  } catch (error) {
    assert.ok(PlatformError.is(error, 'invalid_sandbox_config'), String(error));
    return error.message;
  }
  return assert.fail('the spec was accepted');
}

test('a spec with only an image is enough', () => {
  assert.deepEqual(checkSpec({ image }), { image });
});

test('the body that the reference client always sends is accepted', () => {
  const body = {
    image,
    resources: { vcpus: 1, memory_mib: 512 },
    runtime: {
      workdir: null,
      shell: null,
      scripts: {},
      entrypoint: null,
      cmd: null,
      user: null,
      log_level: null,
    },
    env: [],
    labels: {},
    rlimits: [],
    mounts: [],
    patches: [],
    network: { enabled: true, strict: false },
    init: null,
    pull_policy: 'if_missing',
    security_profile: 'default',
    lifecycle: { ephemeral: false, max_duration_secs: null, idle_timeout_secs: null },
  };
  assert.deepEqual(checkSpec(body), body);
});

const HOSTS = [{ type: 'exact', value: 'api.example' }];
const KEY = { env_var: 'KEY', placeholder: '$SVC_KEY', value: 'v', allowed_hosts: HOSTS };
const secrets = (entries: readonly object[], more: object = {}) => ({
  image,
  network: { secrets: { entries, ...more } },
});
const ENTRY = 'network.secrets.entries[0]';

const NEWER = {
  env_var: 'TOK',
  value: '',
  source: { type: 'env', var: 'TOK' },
  placeholder: '$MSB_TOK',
  allowed_hosts: HOSTS,
  substitution: { headers: true, header_fields: ['Authorization', 'X-Api-Key'], query: true, body: false },
  passthrough_hosts: [{ type: 'wildcard', value: '*.b.example' }],
  violation_action: { type: 'block' },
  require_tls_identity: true,
};

test('the network of the newer reference client is accepted', () => {
  const body = {
    image,
    network: {
      enabled: true,
      policy: { default_egress: 'deny', default_ingress: 'allow', rules: [] },
      secrets: { entries: [NEWER], violation_action: { type: 'block_and_log' } },
      strict: true,
      max_connections: 5,
      max_udp_connections: 9,
    },
  };
  assert.deepEqual(checkSpec(body), body);
});

const refused: readonly (readonly [title: string, spec: unknown, field: string])[] = [
  ['a secret for no host', secrets([{ ...KEY, allowed_hosts: [] }]), `${ENTRY}.allowed_hosts`],
  [
    'a secret for an address',
    secrets([{ ...KEY, allowed_hosts: [{ type: 'exact', value: '192.0.2.1' }] }]),
    `${ENTRY}.allowed_hosts[0].value`,
  ],
  [
    'a wildcard without its star',
    secrets([{ ...KEY, allowed_hosts: [{ type: 'wildcard', value: 'a.example' }] }]),
    `${ENTRY}.allowed_hosts[0].value`,
  ],
  [
    'a placeholder of 1025 bytes in fewer characters',
    secrets([{ ...KEY, placeholder: `${'é'.repeat(512)}x` }]),
    `${ENTRY}.placeholder`,
  ],
  ['a placeholder with a line end', secrets([{ ...KEY, placeholder: 'a\n' }]), `${ENTRY}.placeholder`],
  ...['\\'.repeat(40), '%41', 'a\tb', '\ud83d'].map(
    (placeholder) =>
      [
        `the placeholder ${JSON.stringify(placeholder)}`,
        secrets([{ ...KEY, placeholder }]),
        `${ENTRY}.placeholder`,
      ] as const,
  ),
  ['a variable with =', secrets([{ ...KEY, env_var: 'A=B' }]), `${ENTRY}.env_var`],
  ['a variable twice', secrets([KEY, { ...KEY, placeholder: 'x' }]), 'network.secrets.entries[1].env_var'],
  [
    'a variable that env has too',
    { ...secrets([KEY]), env: [{ key: 'KEY', value: '' }] },
    `${ENTRY}.env_var`,
  ],
  ['a placeholder twice', secrets([KEY, { ...KEY, env_var: 'B' }]), 'network.secrets.entries[1].placeholder'],
  [
    'a passthrough without a target',
    secrets([KEY], { on_violation: { type: 'passthrough', hosts: [] } }),
    'network.secrets.on_violation.hosts',
  ],
  [
    'both forms of what happens on a violation',
    secrets([NEWER], { on_violation: { type: 'block' }, violation_action: { type: 'block' } }),
    'network.secrets.violation_action',
  ],
  [
    'hosts beside the older form of an action',
    secrets([{ ...KEY, on_violation: { type: 'block' }, passthrough_hosts: HOSTS }]),
    `${ENTRY}.passthrough_hosts`,
  ],
  ['both forms of places', secrets([{ ...NEWER, injection: { body: true } }]), `${ENTRY}.substitution`],
  [
    'names of headers where none is filled',
    secrets([{ ...NEWER, substitution: { headers: false, header_fields: ['A'] } }]),
    `${ENTRY}.substitution.header_fields`,
  ],
  [
    'a passthrough in the newer form to an address',
    secrets([{ ...NEWER, passthrough_hosts: [{ type: 'exact', value: '192.0.2.1' }] }]),
    `${ENTRY}.passthrough_hosts[0].value`,
  ],
  [
    'connections over UDP without a limit',
    { image, network: { max_udp_connections: 0 } },
    'network.max_udp_connections',
  ],
  [
    'a name in the store that is none',
    secrets([{ ...KEY, source: { type: 'store', reference: 'a b' } }]),
    `${ENTRY}.source`,
  ],
  ['a bypass that is no name', { image, network: { tls: { bypass: ['a b'] } } }, 'network.tls.bypass[0]'],
  [
    'half an authority',
    { image, network: { tls: { intercept_ca: { cert_path: '/ca.pem' } } } },
    'network.tls.intercept_ca',
  ],
  [
    'a MAC of five bytes',
    { image, network: { interface: { mac: [1, 2, 3, 4, 5] } } },
    'network.interface.mac',
  ],
  ['an unknown field', { image, bogus: 1 }, 'bogus'],
  ['an unknown nested field', { image, resources: { cpus: 1 } }, 'resources.cpus'],
  ['a missing image', {}, 'image'],
  ['a fraction of a CPU', { image, resources: { vcpus: 0.5 } }, 'resources.vcpus'],
  ['no memory', { image, resources: { memory_mib: 0 } }, 'resources.memory_mib'],
  ['a reserved label', { image, labels: { 'sandbox.x': 'y' } }, 'labels.sandbox.x'],
  [
    'a soft limit above the hard one',
    { image, rlimits: [{ resource: 'nofile', soft: 2, hard: 1 }] },
    'rlimits[0].soft',
  ],
  [
    'a limit given twice',
    {
      image,
      rlimits: [
        { resource: 'nofile', soft: 1, hard: 2 },
        { resource: 'nofile', soft: 1, hard: 2 },
      ],
    },
    'rlimits[1].resource',
  ],
  ['a real-time priority', { image, rlimits: [{ resource: 'rtprio', soft: 0, hard: 1 }] }, 'rlimits[0].hard'],
  ['a better nice value', { image, rlimits: [{ resource: 'nice', soft: 0, hard: 40 }] }, 'rlimits[0].hard'],
  [
    'a limit beyond u64',
    { image, rlimits: [{ resource: 'core', soft: 0, hard: 2 ** 65 }] },
    'rlimits[0].hard',
  ],
  [
    'a variable given twice',
    {
      image,
      env: [
        { key: 'A', value: '' },
        { key: 'A', value: '1' },
      ],
    },
    'env[1].key',
  ],
  ['a mount that climbs', { image, mounts: [{ type: 'tmpfs', guest: '/a/../b' }] }, 'mounts[0].guest'],
  ['a mount over the root', { image, mounts: [{ type: 'tmpfs', guest: '//' }] }, 'mounts[0].guest'],
  [
    'a mount over our own folder',
    { image, mounts: [{ type: 'tmpfs', guest: '/.svc/x' }] },
    'mounts[0].guest',
  ],
  ['a mount without its source', { image, mounts: [{ type: 'bind', guest: '/a' }] }, 'mounts[0]'],
  [
    'half an owner',
    { image, mounts: [{ type: 'tmpfs', guest: '/a', options: { override_uid: 1 } }] },
    'mounts[0].options',
  ],
  ['a NUL in a variable', { image, env: [{ key: 'A', value: 'a\0b' }] }, 'env[0].value'],
  [
    'more script than fits into the memory set aside for it',
    { image, runtime: { scripts: { a: 'x'.repeat(600_000), b: 'x'.repeat(600_000) } } },
    'runtime.scripts',
  ],
  ['null', null, 'spec'],
];

for (const [title, spec, field] of refused) {
  test(`${title} is refused by name`, () => {
    assert.ok(refusal(spec).startsWith(field), refusal(spec));
  });
}

test('a key of a map that does not match is refused, never let through unchecked', () => {
  for (const name of ['../init', '../../../etc/cron.d/x', 'a/b', '', 'a\nb', '.hidden']) {
    assert.match(refusal({ image, runtime: { scripts: { [name]: 'x' } } }), /runtime\.scripts/);
  }
  for (const [key, value] of [
    ['', 'x'],
    ['k'.repeat(257), 'x'],
    ['a\0', 'x'],
    ['a', '\0'],
    ['a\nb', { not: 'text' }],
  ] as const) {
    assert.match(refusal({ image, labels: { [key]: value } }), /labels/);
  }
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, '']));
  assert.match(refusal({ image, labels: many }), /labels.*64/);
  const scripts = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`s${index}`, '']));
  assert.match(refusal({ image, runtime: { scripts } }), /runtime\.scripts.*256/);
});

test('a duration has an end: a hundred years, and 2^53 is refused rather than rounded', () => {
  for (const field of ['idle_timeout_secs', 'max_duration_secs']) {
    checkSpec({ image, lifecycle: { ephemeral: false, [field]: 3_155_760_000 } });
    for (const tooLong of [3_155_760_001, 2 ** 53, 1e300])
      assert.match(refusal({ image, lifecycle: { [field]: tooLong } }), new RegExp(`lifecycle\\.${field}`));
  }
});

test('u64 max and other numbers that JSON cannot carry exactly mean unlimited, and are written as u64 max', () => {
  const text = '{"resource":"core","soft":18446744073709551614,"hard":18446744073709551615}';
  const limit = JSON.parse(text) as { soft: number; hard: number };
  assert.ok(checkSpec({ image, rlimits: [limit] }));
  assert.deepEqual(
    [isUnlimited(limit.soft), isUnlimited(2 ** 53), isUnlimited(2 ** 53 - 1)],
    [true, true, false],
  );
  assert.equal(
    JSON.stringify({ hard: toU64(limit.hard), soft: toU64(7) }),
    '{"hard":18446744073709551615,"soft":7}',
  );
});

test('a malformed image reference is refused', () => {
  for (const reference of ['No Image', 'https://example.com/a', 'a:b:c/d', 'UPPER', 'a@sha256:12']) {
    assert.throws(() => checkSpec({ image: { type: 'oci', reference } }), {
      code: 'invalid_image',
      details: { field: 'image.reference', reference },
    });
  }
});
