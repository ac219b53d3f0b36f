import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { checkSandbox } from '../../sandboxes/check-sandbox.ts';
import { readCreateSandbox } from './read-create-sandbox.ts';

const OCI = { image: { type: 'oci', reference: 'alpine' } } as const;
const SNAPSHOT = '00000000-0000-4000-8000-000000000001';
const check = (body: Omit<CreateSandboxRequest, 'name'>) =>
  checkSandbox(readCreateSandbox({ name: 'one', ...body }, { isOperator: false }), []);
const refuses = (body: Omit<CreateSandboxRequest, 'name'>, field: string, reason: RegExp) =>
  assert.throws(
    () => check(body),
    (error) =>
      PlatformError.is(error, 'invalid_sandbox_config') &&
      error.details?.['field'] === field &&
      reason.test(error.message),
  );

test('both documented shapes of an image mean the same', () => {
  const old = check(OCI);
  assert.deepEqual(check({ source: 'oci', reference: 'alpine' }), old);
  assert.deepEqual(old.spec, { image: { type: 'oci', reference: 'alpine' } });
});

test('a snapshot by its id, and the class of isolation', () => {
  const place = { type: 'managed', id: SNAPSHOT } as const;
  assert.equal(check({ source: 'disk_snapshot', disk_snapshot_ref: place }).snapshot, SNAPSHOT);
  assert.equal(check({ ...OCI, isolation: 'gvisor' }).isolation, 'gvisor');
  assert.equal(check({ ...OCI, isolation: 'auto' }).isolation, null);
});

test('ports of a sandbox without a network are refused', () => {
  const ports = [{ host_port: 18_080, guest_port: 80 }];
  refuses({ ...OCI, network: { enabled: false, ports } }, 'network.ports', /without a network/);
  assert.equal(check({ ...OCI, network: { enabled: true, ports } }).ports.length, 1);
  assert.equal(check({ ...OCI, network: { enabled: false, ports: [] } }).ports.length, 0);
});

test('fields that contradict each other are refused by name', () => {
  const managed = { type: 'managed', id: SNAPSHOT } as const;
  refuses({}, 'image', /missing/);
  refuses({ reference: 'alpine' }, 'source', /missing/);
  refuses({ ...OCI, source: 'oci' }, 'source', /contradicts image/);
  refuses({ ...OCI, reference: 'alpine' }, 'reference', /not with image/);
  refuses({ source: 'oci' }, 'reference', /is needed/);
  refuses({ source: 'oci', reference: 'a', path: 'x' }, 'path', /source oci/);
  refuses({ source: 'oci', reference: 'a', disk_snapshot_ref: managed }, 'disk_snapshot_ref', /source oci/);
  refuses({ source: 'disk_snapshot' }, 'disk_snapshot_ref', /is needed/);
  refuses(
    { source: 'disk_snapshot', disk_snapshot_ref: managed, reference: 'a' },
    'reference',
    /disk_snapshot/,
  );
});

test('roots that this engine cannot run are refused in words', () => {
  refuses({ image: { type: 'bind', path: 'root' } }, 'image.type', /use an OCI image/);
  refuses({ image: { type: 'disk_image', path: 'root', format: 'raw' } }, 'image.type', /use an OCI image/);
  refuses({ source: 'bind', path: 'root' }, 'source', /use an OCI image/);
  refuses({ source: 'disk_image', path: 'root', format: 'raw' }, 'source', /use an OCI image/);
  const place = { type: 'host_volume', path: 'x' } as const;
  refuses({ source: 'disk_snapshot', disk_snapshot_ref: place }, 'disk_snapshot_ref.type', /managed/);
});

test('secrets may be a list, and need no placeholder', () => {
  const entry = { env_var: 'K', value: 'sk-1', allowed_hosts: [{ type: 'any' as const }] };
  const whole = { ...entry, placeholder: '$SVC_K' };
  const wanted = check({ ...OCI, network: { secrets: { entries: [whole] } } });
  for (const secrets of [{ entries: [entry] }, [entry], [whole]])
    assert.deepEqual(check({ ...OCI, network: { secrets } }), wanted);
  const own = check({ ...OCI, network: { secrets: [{ ...entry, placeholder: 'mine' }] } });
  assert.equal(own.spec.network?.secrets?.entries[0]?.placeholder, 'mine');
  assert.deepEqual(check({ ...OCI, network: { secrets: [] } }).spec.network, { secrets: { entries: [] } });
});

test('values of secrets are taken out of the spec, and a secret without one is refused', () => {
  const entry = { env_var: 'K', placeholder: '$SVC_K', allowed_hosts: [{ type: 'any' as const }] };
  const secrets = (more: object) => ({ network: { secrets: { entries: [{ ...entry, ...more }] } } });
  const { spec, secrets: kept } = check({ ...OCI, ...secrets({ value: 'sk-1' }) });
  assert.deepEqual(spec.network?.secrets?.entries, [entry]);
  assert.deepEqual(kept.values, ['sk-1']);
  const field = 'network.secrets.entries[0].value';
  for (const source of [
    { type: 'env', var: 'HOME_KEY' },
    { type: 'store', reference: 'x' },
  ]) {
    const referring = check({ ...OCI, ...secrets({ value: '', source }) });
    assert.deepEqual(referring.spec.network?.secrets?.entries, [{ ...entry, source }]);
    assert.deepEqual(referring.secrets.values, ['']);
  }
  refuses({ ...OCI, ...secrets({}) }, field, /is missing/);
});

test('the rules of every spec are checked too', () => {
  refuses({ ...OCI, labels: { 'svc.x': '1' } }, 'labels.svc.x', /reserved/);
  refuses({ ...OCI, rlimits: [{ resource: 'nofile', soft: 2, hard: 1 }] }, 'rlimits[0].soft', /above hard/);
});
