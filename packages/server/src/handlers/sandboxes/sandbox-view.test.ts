import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { DEFAULT_POLICY, DENY_ALL } from '@svc/contract';
import { labelsOf } from '../../sandboxes/labels-of.ts';
import { body, startHealthy, until } from '../../testing/sandboxes.ts';

const SECRET = 'sk-very-secret-value';
const FULL = {
  resources: { vcpus: 2, memory_mib: 1024, disk_size_mib: 8192 },
  runtime: {
    workdir: '/app',
    shell: '/bin/bash',
    user: '1000:1000',
    scripts: { go: 'echo' },
    log_level: 'debug',
  },
  env: [{ key: 'A', value: '1' }],
  labels: { team: 'ml', marker: '' },
  rlimits: [{ resource: 'nofile', soft: 1, hard: 2 }],
  mounts: [
    { type: 'bind', host: 'secret/place', guest: '/b', options: { readonly: true }, quota_mib: 5 },
    { type: 'tmpfs', guest: '/t', size_mib: 64 },
    { type: 'disk_image', host: 'img.qcow2', guest: '/d', format: 'qcow2', fstype: 'ext4' },
  ],
  patches: [{ type: 'text', path: '/x', content: 'patched' }],
  network: {
    enabled: true,
    strict: true,
    max_connections: 7,
    max_udp_connections: 3,
    policy: { default_egress: 'deny', default_ingress: 'allow', rules: [] },
    secrets: {
      entries: [
        {
          env_var: 'K',
          placeholder: '$SVC_K',
          value: SECRET,
          allowed_hosts: [{ type: 'exact', value: 'a.example' }],
        },
        {
          env_var: 'N',
          placeholder: '$SVC_N',
          value: SECRET,
          allowed_hosts: [{ type: 'exact', value: 'a.example' }],
          substitution: { headers: true, header_fields: ['X-Api-Key'], query: true, body: false },
          passthrough_hosts: [{ type: 'any' }],
          violation_action: { type: 'block' },
        },
      ],
      on_violation: { type: 'block' },
    },
    tls: { bypass: ['b.example'], upstream_ca_cert: ['PEM'] },
  },
  lifecycle: { ephemeral: false, idle_timeout_secs: 600, max_duration_secs: 3600 },
  registry: { mode: 'inline', username: 'u', password: 'registry-password' },
};
const OPTIONS = {
  readonly: false,
  noexec: false,
  nosuid: true,
  nodev: true,
  override_uid: null,
  override_gid: null,
};

const RUN = '/sandboxes?start=true&wait_for=running';

test('a spec is shown as image and defaults complete it, and without its sources', async (t) => {
  const server = await startHealthy(t);
  const { status, body: sandbox } = await server.rest('POST', RUN, { body: body('one', FULL) });
  assert.deepEqual([status, sandbox.status], [200, 'running']);
  assert.deepEqual(sandbox.spec, {
    image: 'x',
    env: [{ key: 'PATH', value: '/usr/bin:/bin' }, ...FULL.env],
    labels: { ...FULL.labels, vendor: 'fake' },
    lifecycle: FULL.lifecycle,
    mounts: [
      {
        type: 'Bind',
        guest: '/b',
        options: { ...OPTIONS, readonly: true },
        stat_virtualization: 'strict',
        host_permissions: 'private',
        quota_mib: 5,
      },
      { type: 'Tmpfs', guest: '/t', options: OPTIONS, size_mib: 64 },
      { type: 'DiskImage', guest: '/d', options: OPTIONS, format: 'Qcow2', fstype: 'ext4' },
    ],
    network: {
      enabled: true,
      trust_host_cas: false,
      max_connections: 7,
      max_udp_connections: 3,
      ports: [],
      dns: { nameservers: [], query_timeout_ms: 5000, rebind_protection: true },
      policy: FULL.network.policy,
      secrets: [
        {
          env_var: 'K',
          placeholder: '$SVC_K',
          allowed_hosts: [{ type: 'exact', value: 'a.example' }],
          injection: {
            headers: true,
            header_fields: null,
            basic_auth: true,
            query_params: false,
            body: false,
          },
          on_violation: null,
          passthrough_hosts: [],
        },
        {
          env_var: 'N',
          placeholder: '$SVC_N',
          allowed_hosts: [{ type: 'exact', value: 'a.example' }],
          injection: {
            headers: true,
            header_fields: ['x-api-key'],
            basic_auth: false,
            query_params: true,
            body: false,
          },
          on_violation: { type: 'block' },
          passthrough_hosts: [{ type: 'any' }],
        },
      ],
      interface: {
        ipv4_address: null,
        ipv4_pool: null,
        ipv6_address: null,
        ipv6_pool: null,
        mac: null,
        mtu: null,
      },
      tls: {
        enabled: false,
        block_quic_on_intercept: true,
        verify_upstream: true,
        bypass: ['b.example'],
        intercepted_ports: [443],
        upstream_ca_cert: ['PEM'],
        cache: { capacity: 1000, validity_hours: 24 },
        intercept_ca: { cert_path: null, key_path: null },
        scoped_upstream_ca_cert: [],
        scoped_verify_upstream: [],
      },
    },
    resources: FULL.resources,
    rlimits: [{ resource: 'Nofile', soft: 1, hard: 2 }],
    runtime: {
      cmd: ['sh'],
      entrypoint: ['/bin/tini'],
      hostname: sandbox.id.slice(0, 12),
      shell: '/bin/bash',
      user: '1000:1000',
      workdir: '/app',
      log_level: 'debug',
      scripts: { go: 'echo' },
      disable_metrics_sample: false,
      metrics_sample_interval_ms: 1000,
    },
  });
});

test('a spec is absent until the image is known, and then says all that was left to others', async (t) => {
  const server = await startHealthy(t);
  const made = (await server.rest('POST', '/sandboxes', { body: body('one') })).body;
  assert.deepEqual([made.status, 'spec' in made], ['created', false]);
  const reference = { 'user-agent': 'microsandbox-sdk/0.6.18' };
  assert.ok(!('spec' in (await server.rest('GET', `/sandboxes/${made.id}`, { headers: reference })).body));
  await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`);
  const { spec } = (await server.rest('GET', `/sandboxes/${made.id}`)).body;
  assert.deepEqual(spec.resources, { vcpus: 1, memory_mib: 512, disk_size_mib: 4096 });
  assert.equal(spec.network.max_connections, 256);
  assert.deepEqual(spec.network.policy, DEFAULT_POLICY);
  assert.partialDeepStrictEqual(spec.runtime, { shell: '/bin/sh', user: 'root', workdir: '/srv' });
  const labelled = await server.rest('GET', `/sandboxes?labels=${encodeURIComponent('{"vendor":"fake"}')}`);
  assert.equal(labelled.body.data.length, 1);
  await server.rest('POST', `/sandboxes/${made.id}/stop`);
  const stopped = await until(server, 'one', 'stopped');
  assert.deepEqual(stopped.spec, spec);
  const offline = body('off', { network: { enabled: false }, mounts: [{ type: 'tmpfs', guest: '/t' }] });
  const other = (await server.rest('POST', RUN, { body: offline })).body.spec;
  assert.deepEqual(other.network.policy, DENY_ALL);
  assert.equal(other.mounts[0].size_mib, 512);
});

test('the requested spec is shown until the image is known, without values of the image and without secrets', async (t) => {
  const server = await startHealthy(t);
  const made = (await server.rest('POST', '/sandboxes', { body: body('one', FULL) })).body;
  assert.partialDeepStrictEqual(made.requested, {
    image: 'x',
    env: FULL.env,
    labels: FULL.labels,
    lifecycle: FULL.lifecycle,
    resources: FULL.resources,
    network: { max_connections: 7, secrets: [{ env_var: 'K' }] },
    rlimits: [{ resource: 'Nofile', soft: 1, hard: 2 }],
    runtime: { cmd: [], workdir: '/app', user: '1000:1000', hostname: null },
  });
  assert.deepEqual(made.requested.env, FULL.env, 'without the PATH of the image');
  assert.doesNotMatch(JSON.stringify(made), /very-secret|registry-password|secret\/place/);
  const bare = (await server.rest('POST', '/sandboxes', { body: body('two') })).body.requested;
  assert.deepEqual(bare.runtime.user, null);
  assert.deepEqual(bare.resources, { vcpus: 1, memory_mib: 512, disk_size_mib: 4096 });
  await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`);
  const running = (await server.rest('GET', `/sandboxes/${made.id}`)).body;
  assert.deepEqual(['spec' in running, 'requested' in running], [true, false]);
});

test('labels of an image are taken as far as a caller could have asked for them', () => {
  const own = Object.fromEntries(Array.from({ length: 62 }, (_, index) => [`own${index}`, '']));
  const image = {
    b: '2',
    a: '1',
    c: '3',
    own0: 'x',
    'svc.x': 'y',
    long: 'z'.repeat(5000),
    ['k'.repeat(300)]: '',
  };
  assert.deepEqual(labelsOf({ labels: own }, { labels: image }), { a: '1', b: '2', ...own });
});

test('omitted fields of a policy and its rules are shown with their defaults', async (t) => {
  const server = await startHealthy(t);
  const rule = { direction: 'egress', destination: { domain: 'a.example' }, action: 'allow' };
  const network = { policy: { rules: [rule] } };
  const { body: sandbox } = await server.rest('POST', RUN, { body: body('one', { network }) });
  assert.deepEqual(sandbox.spec.network.policy, {
    default_egress: 'deny',
    default_ingress: 'deny',
    rules: [{ ...rule, protocols: [], ports: [] }],
  });
});

test('secret values and registry passwords reach the engine alone', async (t) => {
  const server = await startHealthy(t);
  const { body: sandbox } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one', FULL),
    headers: { 'idempotency-key': 'secret' },
  });
  assert.equal(sandbox.status, 'running');
  const request = server.orchestrator.requestOf(sandbox.id);
  assert.equal(request.spec.network?.secrets?.entries[0]?.value, undefined);
  assert.deepEqual(request.secretValues, { K: SECRET, N: SECRET });
  assert.deepEqual(request.registryAuth, { username: 'u', password: 'registry-password' });
  assert.equal(request.imageScope, sandbox.org_id);
  assert.equal(request.start, true);
  const shown = [
    sandbox,
    (await server.rest('GET', '/sandboxes')).body,
    ...(await Promise.all(
      (['sandboxes', 'events', 'idempotency', 'sandbox_labels'] as const).map((table) =>
        server.database.selectFrom(table).selectAll().execute(),
      ),
    )),
  ];
  assert.doesNotMatch(JSON.stringify(shown), /very-secret|registry-password/);
});

test('a password that came with a create is forgotten once the image was fetched', async (t) => {
  const server = await startHealthy(t);
  const { registry } = FULL;
  await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('one', { registry }) });
  await waitUntil(async () => {
    const row = await server.database.selectFrom('sandboxes').select('secrets').executeTakeFirst();
    return row?.secrets === null;
  });
});

test('the reference client gets the shape that it sends, and statuses that it knows', async (t) => {
  const server = await startHealthy(t);
  const headers = { 'user-agent': 'microsandbox-sdk/0.6.18' };
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one', { env: FULL.env, runtime: FULL.runtime, rlimits: FULL.rlimits }),
    headers,
  });
  assert.partialDeepStrictEqual(made.spec, {
    image: { type: 'oci', reference: 'x' },
    env: FULL.env,
    runtime: FULL.runtime,
    rlimits: FULL.rlimits,
    pull_policy: 'if_missing',
  });
  const seen = async () => (await server.rest('GET', '/sandboxes', { headers })).body.data[0];
  server.orchestrator.goAway();
  await until(server, 'one', 'temporarily_unavailable');
  assert.equal((await seen()).status, 'starting');
  // As if the time were over.
  const past = new Date(0).toISOString();
  await server.database.updateTable('sandboxes').set({ recovery_ends_at: past }).execute();
  await until(server, 'one', 'recovery_decision_required');
  assert.equal((await seen()).status, 'failed');
  assert.deepEqual((await seen()).spec, made.spec);
});
