import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toCreateRequest } from './create-options.ts';

test('a sandbox without a name gets one and is ephemeral unless told otherwise', () => {
  const nameless = toCreateRequest({ image: 'alpine' });
  assert.match(nameless.name, /^sandbox-[0-9a-f]{8}$/);
  assert.deepEqual(nameless.lifecycle, { ephemeral: true });
  assert.deepEqual(toCreateRequest({ image: 'alpine', isEphemeral: false }).lifecycle, { ephemeral: false });
  assert.deepEqual(toCreateRequest({ image: 'alpine', name: 'x' }).lifecycle, { ephemeral: false });
});

test('options become the body of the request, and `spec` wins', () => {
  const request = toCreateRequest({
    name: 'x',
    image: 'alpine',
    vcpus: 2,
    memoryMib: 64,
    env: { A: 'b' },
    workdir: '/w',
    idleTimeoutSeconds: 60,
    spec: { labels: { from: 'spec' }, pull_policy: 'never' },
  });
  assert.deepEqual(request, {
    name: 'x',
    image: { type: 'oci', reference: 'alpine' },
    resources: { vcpus: 2, memory_mib: 64 },
    runtime: { workdir: '/w' },
    env: [{ key: 'A', value: 'b' }],
    labels: { from: 'spec' },
    lifecycle: { ephemeral: false, idle_timeout_secs: 60 },
    pull_policy: 'never',
  });
  const copy = toCreateRequest({ name: 'y', snapshotId: 's' });
  assert.deepEqual(
    [copy.source, copy.disk_snapshot_ref, copy.image],
    ['disk_snapshot', { type: 'managed', id: 's' }, undefined],
  );
});

test('secrets go where the request has them, inline or by the name of a stored one', () => {
  const { network } = toCreateRequest({
    image: 'alpine',
    network: { max_connections: 7 },
    secrets: {
      KEY: { value: 'v', hosts: ['api.example.com'] },
      OTHER: { stored: 'NAME', hosts: ['*.example.com', '*'], placeholder: 'p', injection: { body: true } },
    },
  });
  assert.deepEqual(network, {
    max_connections: 7,
    secrets: {
      entries: [
        {
          env_var: 'KEY',
          allowed_hosts: [{ type: 'exact', value: 'api.example.com' }],
          value: 'v',
        },
        {
          env_var: 'OTHER',
          placeholder: 'p',
          allowed_hosts: [{ type: 'wildcard', value: '*.example.com' }, { type: 'any' }],
          source: { type: 'store', reference: 'NAME' },
          injection: { body: true },
        },
      ],
    },
  });
});
