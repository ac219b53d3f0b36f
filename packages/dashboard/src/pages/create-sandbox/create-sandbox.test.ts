import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMPTY_FORM, wordsOf } from './sandbox-form.ts';
import { toCommand } from './to-command.ts';
import { toRequest } from './to-request.ts';

const SMALL = { ...EMPTY_FORM, name: 'web', image: 'python' };
const FULL = {
  ...SMALL,
  command: `python3 -c 'print(1)'`,
  vcpus: '2',
  memoryMib: '1024',
  diskMib: '2048',
  env: 'A=1\n B=x=y \n',
  labels: 'team=web',
  mounts: 'data:/data:ro',
  reach: 'named',
  domains: 'example.com',
  secrets: 'TOKEN@api.example.com,*.example.org',
  isolation: 'gvisor',
  isEphemeral: true,
  idleMinutes: '10',
  maxMinutes: '1.5',
} as const;

test('fields with their default are neither sent nor in the command', () => {
  assert.deepEqual(toRequest(SMALL), {
    name: 'web',
    image: { type: 'oci', reference: 'python' },
    resources: { vcpus: 1, memory_mib: 512 },
  });
  assert.equal(toCommand(SMALL), 'svc run --detach --name web python');
});

test('every field becomes what the API calls it', () => {
  const body = toRequest(FULL);
  assert.deepEqual(body.runtime, { cmd: ['python3', '-c', 'print(1)'] });
  assert.deepEqual(body.env, [
    { key: 'A', value: '1' },
    { key: 'B', value: 'x=y' },
  ]);
  assert.deepEqual(body.mounts, [
    { type: 'named', name: 'data', guest: '/data', options: { readonly: true } },
  ]);
  assert.deepEqual(body.lifecycle, { ephemeral: true, idle_timeout_secs: 600, max_duration_secs: 90 });
  assert.equal(body.isolation, 'gvisor');
  assert.deepEqual(body.network?.policy?.rules?.[1], {
    direction: 'egress',
    action: 'allow',
    destination: { domain: 'example.com' },
  });
  const { secrets } = body.network ?? {};
  assert.ok(secrets && !Array.isArray(secrets));
  assert.deepEqual(secrets.entries[0]?.allowed_hosts, [
    { type: 'exact', value: 'api.example.com' },
    { type: 'wildcard', value: '*.example.org' },
  ]);
});

test('the command line says the same, and a shell takes each word as one', () => {
  const command = toCommand({ ...FULL, env: `NOTE=it's $HOME` });
  assert.match(command, /--env 'NOTE=it'\\''s \$HOME'/);
  assert.match(command, /--net none --net-rule allow@dns,allow@domain=example\.com/);
  assert.match(
    command,
    /--volume data:\/data:ro .* --isolation gvisor --idle-timeout 10m --max-duration 1\.5m python python3 -c 'print\(1\)'$/,
  );
  assert.equal(toRequest({ ...SMALL, reach: 'off' }).network?.enabled, false);
  assert.match(toCommand({ ...SMALL, reach: 'off' }), /--no-network/);
});

test('words of a command may be quoted', () => {
  assert.deepEqual(wordsOf(`sh -c "a b" 'c d' e`), ['sh', '-c', 'a b', 'c d', 'e']);
});

test('a snapshot takes the place of the image', () => {
  const form = { ...SMALL, image: '', snapshot: 'clean' };
  assert.equal(toCommand(form), 'svc run --detach --name web --snapshot clean -');
  const { source, disk_snapshot_ref: reference, image } = toRequest(form);
  assert.deepEqual(
    [source, reference, image],
    ['disk_snapshot', { type: 'managed', id: 'clean' }, undefined],
  );
});
