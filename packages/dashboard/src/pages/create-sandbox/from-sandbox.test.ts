import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromSandbox, type AskedSandbox } from './from-sandbox.ts';
import { EMPTY_FORM } from './sandbox-form.ts';
import { toRequest } from './to-request.ts';

const RULES = toRequest({ ...EMPTY_FORM, reach: 'named', domains: 'example.com' }).network?.policy?.rules;
const ASKED: AskedSandbox['spec'] = {
  image: 'nowhere/none',
  env: [{ key: 'A', value: 'x=y' }],
  labels: { team: 'web' },
  lifecycle: { ephemeral: true, idle_timeout_secs: 600, max_duration_secs: 90 },
  mounts: [{ type: 'Named', guest: '/data' }],
  network: {
    enabled: true,
    policy: null,
    ports: [],
    secrets: [{ env_var: 'TOKEN', allowed_hosts: [{ type: 'wildcard', value: '*.example.org' }] }],
  },
  resources: { vcpus: 2, memory_mib: 1024, disk_size_mib: 2048 },
  rlimits: [],
  runtime: { cmd: ['sh', '-c', 'echo a b'], entrypoint: null, hostname: null, user: null, workdir: null },
};
const VOLUMES = [{ volume_id: 'v', name: 'data', mount_path: '/data', read_only: true }];
const asked = (spec: Partial<AskedSandbox['spec']> = {}): AskedSandbox => ({
  name: 'web',
  isolation: 'gvisor',
  spec: { ...ASKED, ...spec },
});
const withPolicy = (policy: AskedSandbox['spec']['network']['policy']) =>
  fromSandbox(asked({ network: { ...ASKED.network, policy } }), VOLUMES);

test('a form is filled with what another sandbox was asked for, under a free name', () => {
  assert.deepEqual(fromSandbox(asked(), VOLUMES), {
    form: {
      name: 'web-2',
      image: 'nowhere/none',
      snapshot: '',
      command: 'sh -c "echo a b"',
      vcpus: '2',
      memoryMib: '1024',
      diskMib: '2048',
      env: 'A=x=y',
      labels: 'team=web',
      mounts: 'data:/data:ro',
      reach: 'public',
      domains: '',
      secrets: 'TOKEN@*.example.org',
      isolation: 'gvisor',
      isEphemeral: true,
      idleMinutes: '10',
      maxMinutes: '1.5',
    },
    omitted: [],
  });
  assert.equal(fromSandbox({ ...asked(), name: 'web-9' }, []).form.name, 'web-10');
  assert.equal(fromSandbox({ ...asked(), name: 'a'.repeat(128) }, []).form.name.length, 128);
});

test('rules of the form are recognized, and others become the least access', () => {
  const deny = { default_egress: 'deny', default_ingress: 'deny' } as const;
  const named = withPolicy({ ...deny, rules: RULES ?? [] });
  assert.deepEqual([named.form.reach, named.form.domains], ['named', 'example.com']);
  assert.equal(withPolicy({ ...deny, rules: [] }).form.reach, 'none');
  const [toNames] = RULES ?? [];
  assert.ok(toNames);
  const toPublic = { direction: 'egress', action: 'allow', destination: { group: 'public' } } as const;
  const standard = { default_egress: 'deny', default_ingress: 'allow', rules: [toNames, toPublic] } as const;
  assert.equal(withPolicy(standard).form.reach, 'public');
  assert.equal(withPolicy({ ...standard, rules: [toPublic, toNames] }).form.reach, 'none');
  const allow = { default_egress: 'allow', default_ingress: 'allow' } as const;
  assert.equal(withPolicy({ ...allow, rules: [] }).form.reach, 'all');
  const other = withPolicy({
    ...allow,
    rules: [{ direction: 'egress', action: 'deny', destination: { cidr: '10.0.0.0/8' } }],
  });
  assert.equal(other.form.reach, 'none', 'never more than was asked for');
  assert.deepEqual(other.omitted, ['network rules']);
  const [names, domain] = RULES ?? [];
  assert.ok(names && domain);
  const onePort = withPolicy({ ...deny, rules: [names, { ...domain, ports: [{ start: 443, end: 443 }] }] });
  assert.equal(onePort.form.reach, 'none');
});

test('settings without a field in the form are named', () => {
  const { omitted, form } = fromSandbox(
    asked({
      env: [{ key: 'A', value: 'two\nlines' }],
      mounts: [{ type: 'Tmpfs', guest: '/tmp' }],
      network: {
        ...ASKED.network,
        ports: [{}],
        secrets: [{ env_var: 'K', allowed_hosts: [{ type: 'any' }] }],
      },
      runtime: { ...ASKED.runtime, cmd: [`it's "both"`], user: 'app' },
    }),
    [],
  );
  assert.deepEqual(omitted, [
    'command',
    'environment variable A',
    'mount at /tmp',
    'secret K',
    'published ports',
    'user',
  ]);
  assert.deepEqual([form.env, form.mounts, form.secrets, form.command], ['', '', '', '']);
});
