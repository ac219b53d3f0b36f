import assert from 'node:assert/strict';
import { claim, provedBy, type Claim } from '../claim.ts';
import type { Ground } from '../ground.ts';

/** A part of the network that cannot be had yet: what asks for it, the field that the refusal names, and what it would mean. */
type Refused = readonly [
  id: string,
  says: string,
  network: object,
  field: string,
  covers?: readonly string[],
];

function withRule(rule: object): object {
  const usual = { direction: 'egress', destination: { cidr: '198.51.100.0/24' }, action: 'allow' };
  return { policy: { rules: [{ ...usual, ...rule }] } };
}

function withSecret(entry: object, more: object = {}): object {
  const usual = {
    env_var: 'KEY',
    placeholder: '$SVC_KEY',
    value: 'v',
    allowed_hosts: [{ type: 'exact', value: 'api.example' }],
  };
  return { secrets: { entries: [{ ...usual, ...entry }], ...more } };
}

const RULES = 'network.policy.rules';
const SECRETS = 'network.secrets';
const spec = (path: string) => `spec.network.${path}`;
const rule = (path: string) => spec(`policy.rules.${path}`);
const entry = (path: string) => spec(`secrets.entries.${path}`);
const secret = (path: string) => spec(`secrets.${path}`);
const bothSecret = (path: string) => [entry(path), secret(path)] as const;

const POLICY: readonly Refused[] = [
  [
    rule('destination.group=multicast'),
    'Multicast does not leave a sandbox; a rule may deny it',
    withRule({ destination: { group: 'multicast' } }),
    `${RULES}[0].destination.group`,
  ],
  [
    rule('protocols=icmpv6'),
    'There is no IPv6 inside without `--ipv6-pool`; a rule may deny it',
    withRule({ protocols: ['icmpv6'] }),
    `${RULES}[0].protocols`,
  ],
];

const HOSTS: readonly (readonly [string, object])[] = [
  ['exact', { type: 'exact', value: 'api.example' }],
  ['wildcard', { type: 'wildcard', value: '*.api.example' }],
  ['any', { type: 'any' }],
];

/** Of one entry, and of all of them. */
function violations(): readonly Refused[] {
  const types = ['block', 'block_and_log', 'block_and_terminate'];
  const places = [
    { at: 'entries.on_violation', with: (action: object) => withSecret({ on_violation: action }) },
    { at: 'on_violation', with: (action: object) => withSecret({}, { on_violation: action }) },
  ];
  return places.flatMap(({ at, with: ask }): Refused[] => [
    [
      secret(`${at}.type`),
      'What happens when a placeholder is seen on its way to another host',
      ask({ type: 'block' }),
      SECRETS,
      [secret(`${at}.type=block`)],
    ],
    ...types
      .slice(1)
      .map((type): Refused => [
        secret(`${at}.type=${type}`),
        `The violation is answered with ${type}`,
        ask({ type }),
        SECRETS,
      ]),
    [
      secret(`${at}.type=passthrough`),
      'The placeholder is let through to some hosts',
      ask({ type: 'passthrough', hosts: [{ type: 'any' }] }),
      SECRETS,
    ],
    [
      secret(`${at}.hosts.type`),
      'How such a host is named',
      ask({ type: 'passthrough', hosts: [{ type: 'any' }] }),
      SECRETS,
      [secret(`${at}.hosts.type=any`)],
    ],
    ...HOSTS.slice(0, 2).map(([type, host]): Refused => [
      secret(`${at}.hosts.type=${type}`),
      `Such a host, ${type}`,
      ask({ type: 'passthrough', hosts: [host] }),
      SECRETS,
      type === 'exact' ? [secret(`${at}.hosts.value`)] : [],
    ]),
    [
      secret(at),
      'Null leaves it to what holds for all',
      at === 'on_violation' ? withSecret({}) : ask(null as unknown as object),
      SECRETS,
    ],
  ]);
}

/** The same in the words of newer clients. */
function newerForms(): readonly Refused[] {
  const types = ['block', 'block_and_log', 'block_and_terminate'];
  const wholes = [
    { at: 'entries.', with: (field: object) => withSecret(field) },
    { at: '', with: (field: object) => withSecret({}, field) },
  ];
  const substitutions = { headers: true, header_fields: ['X-Api-Key'], query: true, body: true };
  return [
    ...Object.entries(substitutions).map(([place, value]): Refused => [
      entry(`substitution.${place}`),
      `Where the placeholder is replaced, in the words of newer clients: ${place}`,
      withSecret({ substitution: { [place]: value } }),
      SECRETS,
      [`substitution.${place}`, ...(place === 'header_fields' ? ['injection.header_fields'] : [])].map(
        secret,
      ),
    ]),
    ...wholes.flatMap(({ at, with: ask }): Refused[] => [
      ...types.map((type): Refused => [
        secret(`${at}violation_action.type=${type}`),
        `A violation towards any other host is answered with ${type}`,
        ask({ violation_action: { type } }),
        SECRETS,
        type === 'block' ? [secret(`${at}violation_action.type`)] : [],
      ]),
      [
        secret(`${at}violation_action`),
        'Null leaves it to what holds for all',
        ask({ violation_action: null }),
        SECRETS,
      ],
      [
        secret(`${at}passthrough_hosts.type`),
        'How a host that is sent the placeholder as it is is named',
        ask({ passthrough_hosts: [{ type: 'any' }] }),
        SECRETS,
        at === '' ? [secret('passthrough_hosts.type=any')] : [secret(`${at}passthrough_hosts.type=any`)],
      ],
      ...HOSTS.slice(0, 2).map(([type, host]): Refused => [
        secret(`${at}passthrough_hosts.type=${type}`),
        `Such a host, ${type}`,
        ask({ passthrough_hosts: [host] }),
        SECRETS,
        type === 'exact' ? [secret(`${at}passthrough_hosts.value`)] : [],
      ]),
    ]),
  ];
}

const SECRET_ROWS: readonly Refused[] = [
  [
    entry('env_var'),
    'The variable that holds the placeholder of a secret',
    withSecret({}),
    SECRETS,
    [secret('env_var')],
  ],
  [
    entry('placeholder'),
    'What processes see instead of the secret',
    withSecret({ placeholder: '$OTHER' }),
    SECRETS,
    [secret('placeholder')],
  ],
  [
    entry('value'),
    'The secret, which stays outside',
    withSecret({ value: 'sealed' }),
    SECRETS,
    [secret('value')],
  ],
  [
    entry('source'),
    'Null: the value is in the request',
    withSecret({ source: null }),
    SECRETS,
    [secret('source')],
  ],
  [
    entry('source.type'),
    'Where the value comes from',
    withSecret({ source: { type: 'env', var: 'X' }, value: '' }),
    SECRETS,
    [...bothSecret('source.type=env'), ...bothSecret('source.var'), secret('source.type')],
  ],
  [
    entry('source.type=store'),
    'From a store of secrets',
    withSecret({ source: { type: 'store', reference: 'x' }, value: '' }),
    SECRETS,
    [entry('source.reference'), secret('source.reference'), secret('source.type=store')],
  ],
  [
    entry('allowed_hosts.type'),
    'How a host that may be sent the secret is named',
    withSecret({}),
    SECRETS,
    [secret('allowed_hosts.type')],
  ],
  ...HOSTS.map(([type, host]): Refused => [
    entry(`allowed_hosts.type=${type}`),
    `A host that may be sent the secret, ${type}`,
    withSecret({ allowed_hosts: [host] }),
    SECRETS,
    [secret(`allowed_hosts.type=${type}`)],
  ]),
  [
    entry('allowed_hosts.value'),
    'The name of such a host',
    withSecret({}),
    SECRETS,
    [secret('allowed_hosts.value')],
  ],
  ...['headers', 'basic_auth', 'query_params', 'body'].map((place): Refused => [
    entry(`injection.${place}`),
    `Whether the placeholder is replaced there: ${place}`,
    withSecret({ injection: { [place]: true } }),
    SECRETS,
    [bothSecret(`injection.${place}`)[1]],
  ]),
  ...violations(),
  ...newerForms(),
  [
    entry('require_tls_identity'),
    'Whether the host must show who it is',
    withSecret({ require_tls_identity: false }),
    SECRETS,
    [secret('require_tls_identity')],
  ],
];

const UNCOUNTED: readonly Refused[] = [
  [
    spec('strict'),
    'Rules that allow a name hold only for connections whose requests are read, and are for that name',
    { strict: true, ...withRule({ destination: { domain: 'example.org' } }) },
    'network.strict',
  ],
];

const OTHERS: readonly Refused[] = [
  [
    spec('trust_host_cas'),
    'Whether the authorities that the host trusts are trusted inside',
    { trust_host_cas: true },
    'network.trust_host_cas',
  ],
  ...Object.entries({
    ipv6_address: 'fd00::2',
    ipv6_pool: 'fd00::/64',
  }).map(([name, value]): Refused => [
    spec(`interface.${name}`),
    `A chosen setting of the interface: ${name}; without \`--ipv6-pool\` sandboxes have no IPv6`,
    { interface: { [name]: value } },
    `network.interface.${name}`,
  ]),
  ...tls(),
];

function tls(): readonly Refused[] {
  const fields = {
    enabled: true,
    block_quic_on_intercept: true,
    verify_upstream: true,
    bypass: ['example.org'],
    intercepted_ports: [443],
    upstream_ca_cert: ['x'],
    cache: { capacity: 1, validity_hours: 1 },
    intercept_ca: { cert_path: 'x', key_path: 'x' },
    scoped_upstream_ca_cert: [{ path: 'x', pattern: 'example.org' }],
    scoped_verify_upstream: [{ pattern: 'example.org', verify: true }],
  };
  return Object.entries(fields).flatMap(([name, value]): readonly Refused[] => {
    const [first] = Array.isArray(value) ? value : [value];
    const inner = typeof first === 'object' ? Object.keys(first) : [];
    const paths = inner.length === 0 ? [name] : inner.map((below) => `${name}.${below}`);
    return paths.map((path): Refused => [
      spec(`tls.${path}`),
      `A choice for the interception of TLS: ${path}`,
      { tls: { [name]: value } },
      `network.tls.${name}`,
    ]);
  });
}

/** Asking for it is an error that says which field it is about; it is never taken and left without effect. */
function toClaim([id, says, network, field, covers = []]: Refused): Claim {
  const how = `a create with it is 400 and names \`${field}\``;
  const proof = async (ground: Ground) => {
    const error = await ground.refusal({ network });
    assert.equal(error.details.field, field, JSON.stringify(error));
    assert.ok(String(error.details.reason).length > 10, 'it says why');
  };
  return claim(id, says, how, proof, { state: 'refused', covers });
}

const ATTACKS = 'packages/engine/src/egress/secrets/attacks.test.ts';
const PLACEHOLDERS = 'packages/engine/src/egress/secrets/placeholders.test.ts';
const INTERCEPTOR = 'packages/engine/src/egress/tls/interceptor.test.ts';
const REAL = 'test/engine/secrets.test.ts';
const FIELDS = 'test/e2e/tls-fields.test.ts';
const FORMS = 'packages/engine/src/sandboxes/interception.test.ts';
const STORE = 'packages/server/src/handlers/credentials/secrets.test.ts';

/** The tests that prove what works, by the first part of an id that fits. */
const PROOFS: readonly (readonly [part: RegExp, file: string, title: string])[] = [
  [/header_fields/, ATTACKS, 'an allowed host gets the value in the headers that are named alone'],
  [/substitution\./, FORMS, 'both forms of a secret mean the same'],
  [/violation_action|passthrough_hosts/, FORMS, 'both forms of what happens on a violation mean the same'],
  [
    /injection\.(headers|basic)/,
    ATTACKS,
    'an allowed host gets the value in headers and Basic, and nowhere else unless asked for',
  ],
  [
    /injection\./,
    ATTACKS,
    'an allowed host gets the value in query and body when that is asked for, with the right length',
  ],
  [/type=passthrough|\.hosts\./, ATTACKS, 'passthrough sends the placeholder as it is to the hosts named'],
  [
    /type=block_and_terminate/,
    REAL,
    'a violation with block_and_terminate ends the sandbox; without the value none starts',
  ],
  [
    /on_violation/,
    FIELDS,
    'a violation is reported with the action of its secret, of all, or the default, and logged unless that is block',
  ],
  [
    /require_tls/,
    REAL,
    'without proof of identity a secret is used and held over plain HTTP as over TLS, at every port',
  ],
  [
    /\.source/,
    STORE,
    'a sandbox has the value of a secret that it refers to as ${source.type}, and a new one soon',
  ],
  [
    /allowed_hosts\.type/,
    PLACEHOLDERS,
    'a host is allowed by its exact name, the apex of a wildcard or anything, and only when it is proven to be it',
  ],
  [
    /tls\.scoped_upstream/,
    FIELDS,
    'an authority of scoped_upstream_ca_cert vouches for hosts of its pattern alone',
  ],
  [/trust_host/, FIELDS, 'with trust_host_cas programs inside trust whom the host trusts'],
  [
    /quic/,
    FIELDS,
    'datagrams to intercepted ports are dropped with block_quic_on_intercept, and pass without',
  ],
  [/secrets\.|upstream_ca_cert$/, REAL, 'clients use a secret towards its host without holding it'],
  [/strict$/, REAL, 'strict names are reached over TLS and HTTP, and not by what says no name'],
  [/tls\.enabled/, FIELDS, 'with tls.enabled connections are read, and without they are left alone'],
  [/tls\.cache/, FIELDS, 'certificates hold for cache.validity_hours, and cache.capacity of them are kept'],
  [/tls\.verify/, INTERCEPTOR, 'a server with a certificate of an untrusted authority gets no request'],
  [/tls\.scoped_verify/, INTERCEPTOR, 'verification can be disabled for some hosts, and for those alone'],
  [/tls\.bypass/, INTERCEPTOR, 'connections to a host on the bypass list are not intercepted'],
  [/tls\.intercepted/, INTERCEPTOR, 'on an intercepted port only readable protocols pass'],
];

function proofOf(id: string) {
  return PROOFS.find(([part]) => part.test(id));
}

function toProved(row: Refused): Claim {
  const [id, says, , , covers = []] = row;
  const [, file = '', title = ''] = proofOf(id) ?? [];
  return provedBy(id, says, file, title, { covers });
}

const ALL = [...SECRET_ROWS, ...UNCOUNTED, ...OTHERS];

/** What the schema has and no host can do yet. */
export const refusedPolicyClaims: readonly Claim[] = [
  ...POLICY,
  ...OTHERS.filter(([id]) => /interface|intercept_ca/.test(id)),
].map(toClaim);

/** What is proved elsewhere. */
export const interceptionClaims: readonly Claim[] = ALL.filter((row) => proofOf(row[0]) !== undefined).map(
  toProved,
);
