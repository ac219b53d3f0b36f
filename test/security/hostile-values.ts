import { generateKeyPairSync } from 'node:crypto';
import { pathsOf, REST_OPERATIONS, type RestOperation, type RestOperationName } from '@svc/contract/rest';
import { BUSYBOX } from '../engine/start-engine.ts';
import { placesOfText, withText } from './text-places.ts';

/** What clears a terminal, renames its window, makes a line that looks like ours, turns letters round. */
export const LINES = 'x\nforged\u202E\u001B]0;owned\u0007\u001B[2J\u009B8m\u007F\u2066';
/** The same without what ends lines, for names that have one. */
export const MARKS = 'x\u202E\u009B8m\u2066\u200B';

/** What exists before anything hostile is stored. */
export interface Known {
  readonly sandbox_id: string;
  readonly volume_id: string;
  readonly webhook_id: string;
  /** Of a provider that answers. */
  readonly issuer_url: string;
}

let count = 0;
const PEM = '-----BEGIN CERTIFICATE-----';
const HOSTS = [
  { type: 'exact', value: 'api.example' },
  { type: 'wildcard', value: '*.api.example' },
];
const PASSED = { type: 'passthrough', hosts: HOSTS };
const SECRET = { env_var: 'TOKEN', placeholder: '$TOKEN', allowed_hosts: HOSTS, on_violation: PASSED };
/** In the words of newer clients. */
const NEWER_SECRET = {
  env_var: 'TOKEN',
  value: 'v',
  placeholder: '$TOKEN',
  allowed_hosts: HOSTS,
  substitution: { header_fields: ['Authorization'] },
  passthrough_hosts: HOSTS,
};
const RULE = { direction: 'egress', action: 'deny' };
const NETWORK = {
  policy: {
    rules: [
      { ...RULE, destination: { cidr: '192.0.2.0/24' } },
      { ...RULE, destination: { domain: 'a.example' } },
      { ...RULE, destination: { domain_suffix: 'a.example' } },
      { ...RULE, destination: { group: 'public' }, action: 'allow' },
    ],
  },
  dns: { nameservers: ['9.9.9.9'] },
  tls: { bypass: ['a.example'], scoped_verify_upstream: [{ pattern: 'a.example', verify: true }] },
  secrets: { entries: [{ ...SECRET, value: 'v' }], on_violation: PASSED },
};
/** Each with something that is refused unless it is what it should be, or in any case here. */
const OTHER_NETWORKS = [
  { tls: { upstream_ca_cert: [PEM] } },
  { tls: { scoped_upstream_ca_cert: [{ pattern: 'a.example', path: PEM }] } },
  { tls: { intercept_ca: { cert_path: '/a', key_path: '/b' } } },
  { secrets: { entries: [{ ...SECRET, source: { type: 'env', var: 'A' } }] } },
  { secrets: { entries: [{ ...SECRET, source: { type: 'store', reference: 'A' } }] } },
];
const NEWER_NETWORK = { secrets: { entries: [NEWER_SECRET], passthrough_hosts: HOSTS } };
/** The entries as a list, without the settings for all of them. */
const LISTED_NETWORKS = [
  { ...SECRET, value: 'v' },
  { ...SECRET, source: { type: 'env', var: 'A' } },
  { ...SECRET, source: { type: 'store', reference: 'A' } },
  NEWER_SECRET,
].map((secret) => ({ secrets: [secret] }));
const ADDRESSES = ['ipv4_address', 'ipv4_pool', 'ipv6_address', 'ipv6_pool'];
const REGISTRIES = [
  { mode: 'specific', credential_id: '00000000-0000-4000-8000-000000000000' },
  { mode: 'inline', username: 'u', password: 'p' },
];

/** What callers send, with a text in each place that may have one; several where not all go together. */
const EXAMPLES: Partial<Record<RestOperationName, (known: Known) => readonly object[]>> = {
  'sandboxes.create': () => creates().map((rest) => ({ name: `made-${count}`, ...rest })),
  'sandboxes.update': () => [{ name: `renamed-${count}` }, { slug: `renamed-${count}` }],
  'processes.start': () => [
    { cmd: 'sleep', args: ['1000'], env: { A: '1' }, cwd: '/', user: 'root', name: `p${count}` },
  ],
  'sandboxes.recoverByName': () => [{ action: 'wait' }],
  'processes.resize': () => [{ rows: 1, cols: 1 }],
  'processes.signal': () => [{ signal: 'SIGTERM' }],
  'contexts.create': () => [
    { language: 'python', name: `c${count}`, cwd: '/', env: { A: '1' } },
    { kernel: 'python3' },
  ],
  'network.update': () => [NETWORK, NEWER_NETWORK, ...OTHER_NETWORKS, ...LISTED_NETWORKS],
  'network.explain': () => [{ host: 'a.example', port: 443 }],
  'snapshots.create': ({ sandbox_id }) => [
    { kind: 'disk', sandbox_id, name: `snap-${count}`, labels: { team: 'a' } },
    { kind: 'disk', sandbox_id, name: `snap-${count}`, dest_dir: '/a' },
  ],
  'images.pull': () => [
    { reference: BUSYBOX, pull_policy: 'never' },
    ...REGISTRIES.map((registry) => ({ reference: BUSYBOX, pull_policy: 'never', registry })),
  ],
  'volumes.create': () => [{ name: `vol-${count}`, labels: { team: 'a' } }],
  'volumes.update': () => [{ labels: { team: 'a' } }],
  'volumeFiles.mkdir': () => [{ path: `folder-${count}` }],
  'volumeFiles.copy': () => [{ from: 'first', to: `copy-${count}` }],
  'volumeFiles.rename': () => [{ from: 'first', to: 'first' }],
  'files.makeFolder': () => [{ path: `/made-${count}`, owner: 'root', mode: '0755' }],
  'files.move': () => [
    { from: '/etc/hostname', to: `/moved-${count}` },
    { from: `/gone-${count}`, to: '/moved' },
  ],
  'files.change': () => [{ path: '/tmp', owner: 'root', mode: '1777', metadata: { team: 'a' } }],
  'files.createLink': () => [{ path: `/linked-${count}`, method: 'PUT', owner: 'root', mode: '0644' }],
  'billing.choosePlan': () => [{ plan: 'self_hosted' }],
  'webhooks.create': () => [
    { url: 'https://hooks.example/', description: 'a', event_types: ['sandbox_created'], enabled: false },
  ],
  'webhooks.update': () => [{ url: 'https://hooks.example/' }, { description: 'a' }],
  'organizations.create': () => [{ name: 'Other', slug: `other-${count}` }],
  'organizations.update': () => [{ name: 'Acme' }, { slug: 'acme' }],
  'invites.create': () => [{ email: `p${count}@example.com` }],
  'identityProvider.put': ({ issuer_url }) => [
    { issuer_url, client_id: 'c', client_secret: 's', allowed_domains: ['a.example'] },
  ],
  'apiKeys.create': () => [{ name: 'ci', expires_at: '2040-01-01T00:00:00Z' }],
  'tokens.create': () => [{ name: 'ci', expires_at: '2040-01-01T00:00:00Z' }],
  'registries.put': () => [{ registry_host: 'registry.example', username: 'u', password: 'p' }],
  'secrets.put': () => [
    { value: 'v', allowed_hosts: HOSTS },
    { value: 'v', allowed_hosts: HOSTS, upstream_ca_cert: [PEM] },
  ],
  'users.update': () => [{ display_name: 'Ann', avatar_url: 'https://example.com/a.png' }],
  'sshKeys.create': () => [{ name: `key ${count}`, public_key: `${newPublicKey()} comment` }],
};

function creates(): readonly object[] {
  const image = { type: 'oci', reference: BUSYBOX };
  return [
    {
      slug: `made-${count}`,
      image,
      runtime: {
        workdir: '/',
        shell: '/bin/sh',
        user: 'root',
        hostname: 'h',
        entrypoint: ['sleep'],
        cmd: ['1'],
        scripts: { run: '#!/bin/sh' },
      },
      env: [{ key: 'A', value: '1' }],
      labels: { team: 'a' },
      mounts: [
        { type: 'tmpfs', guest: '/x' },
        { type: 'named', name: 'data', guest: '/y' },
      ],
      patches: [
        { type: 'text', path: '/a', content: 'a' },
        { type: 'symlink', target: '/a', link: '/b' },
      ],
      network: NETWORK,
    },
    { image, network: { ports: [{ guest_port: 80, host_port: 80, host_bind: '127.0.0.1' }] } },
    { image, network: NEWER_NETWORK },
    ...[...OTHER_NETWORKS, ...LISTED_NETWORKS].map((network) => ({ image, network })),
    ...ADDRESSES.map((name) => ({ image, network: { interface: { [name]: '192.0.2.1' } } })),
    ...REGISTRIES.map((registry) => ({ image, registry })),
    { image, init: { cmd: '/bin/sh', args: ['a'], env: [['B', '1']] } },
    { image, mounts: [{ type: 'disk_image', host: 'a', guest: '/b', format: 'raw', fstype: 'ext4' }] },
    { image, patches: [{ type: 'copy_file', src: 'a', dst: '/b' }] },
    { image: { type: 'disk_image', path: '/a', format: 'raw', fstype: 'ext4' } },
    { source: 'oci', reference: BUSYBOX },
    { source: 'disk_image', path: '/a', format: 'raw', fstype: 'ext4' },
    { source: 'disk_snapshot', disk_snapshot_ref: { type: 'managed', id: REGISTRIES[0]?.credential_id } },
    { source: 'disk_snapshot', disk_snapshot_ref: { type: 'host_volume', path: '/a' } },
  ];
}

/** Operations whose texts are never shown, with the reason. */
const NOT_SHOWN: Partial<Record<RestOperationName, string>> = {
  'code.run': 'the code runs and is forgotten',
  'code.stream': 'the code runs and is forgotten',
  'volumeFiles.existMany': 'a question',
  'organizations.remove': 'a confirmation',
  'users.remove': 'a confirmation',
  'session.create': 'credentials',
  'session.createByLink': 'credentials',
  'session.beginAtProvider': 'a way to sign in, which is not kept',
  'session.createByProvider': 'credentials',
  'sessions.signUp': 'credentials, and the name that users.update takes',
  'password.set': 'credentials',
  'secondFactor.confirm': 'credentials',
  'secondFactor.remove': 'credentials',
};

/** What became of a text that was sent to one place. */
export interface Sent {
  readonly place: string;
  readonly text: string;
  readonly status: number;
  /** Of the error; empty: it was taken. */
  readonly message: string;
  readonly field: string;
}

export interface Caller {
  readonly url: string;
  readonly token: string;
  readonly slug: string;
}

/** Fields of the table of operations without an example and without an entry here. */
export function forgottenPlaces(known: Known): readonly string[] {
  return placesByOperation().flatMap(([name, places]) => {
    const examples = EXAMPLES[name]?.(known) ?? [];
    return places
      .filter(() => NOT_SHOWN[name] === undefined)
      .filter((place) => examples.every((example) => withText(example, place, String) === undefined))
      .map((place) => `${name} ${place}`);
  });
}

/** Sends a hostile text to each place that takes one, the worst first, until one is taken. */
export async function sendHostile(caller: Caller, known: Known): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  for (const [name, places] of placesByOperation())
    for (const place of places)
      for (const change of [
        () => LINES,
        (before: string) => `${before}${LINES}`,
        (before: string) => `${before}${MARKS}`,
      ]) {
        count += 1;
        const body = EXAMPLES[name]?.(known)
          .map((example) => withText(example, place, change))
          .find((made) => made !== undefined);
        if (body === undefined) break;
        const outcome = await send(caller, { ...known }, name, body);
        sent.push({ place: `${name} ${place}`, text: change(''), ...outcome });
        if (outcome.message === '') break;
      }
  return sent;
}

/** The same in each part of an address that names something. */
export async function nameHostile(caller: Caller, known: Known): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  for (const [name, { params, body }] of OPERATIONS)
    for (const param of Object.keys(params.properties)) {
      const example = body === null ? undefined : (EXAMPLES[name]?.(known)[0] ?? {});
      const outcome = await send(caller, { ...known, [param]: LINES }, name, example);
      sent.push({ place: `${name} ${param}`, text: LINES, ...outcome });
    }
  return sent;
}

const OPERATIONS = Object.entries(REST_OPERATIONS) as [RestOperationName, RestOperation][];

function placesByOperation(): readonly (readonly [RestOperationName, readonly string[]])[] {
  return OPERATIONS.flatMap(([name, { body }]) =>
    body === null || typeof body === 'string' ? [] : [[name, placesOfText(body)] as const],
  );
}

async function send(
  { url, token, slug }: Caller,
  known: Readonly<Record<string, string>>,
  name: RestOperationName,
  body: unknown,
): Promise<Pick<Sent, 'status' | 'message' | 'field'>> {
  const operation: RestOperation = REST_OPERATIONS[name];
  const path = pathsOf(operation).find(({ audience }) => audience !== 'key')?.path ?? '';
  const ids = { slug, id: known['volume_id'] ?? '', name: `S${count}`, ...known } as typeof known;
  const at = path.replaceAll(/\{(\w+)\}/g, (_, id: string) => encodeURIComponent(ids[id] ?? id));
  const response = await fetch(`${url}/v1${at}`, {
    method: operation.method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  // A stream tells how it went in its last event.
  const [, failure] = /^event: error\ndata: (.*)$/m.exec(text) ?? [];
  if (response.ok && failure === undefined) return { status: response.status, message: '', field: '' };
  const { error } = JSON.parse(failure ?? text) as {
    error: { message: string; details: { field?: string } | null };
  };
  return { status: response.status, message: error.message, field: error.details?.field ?? '' };
}

function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const kind = Buffer.from('ssh-ed25519');
  const part = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
  return `ssh-ed25519 ${Buffer.concat([part(kind), part(raw)]).toString('base64')}`;
}
