import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRestInput } from '../rest/index.ts';

/** What is said about a create with these fields beside a good name and image. */
function problemOf(fields: Readonly<Record<string, unknown>>): string {
  const body = { name: 'a', image: { type: 'oci', reference: 'x' }, ...fields };
  try {
    checkRestInput('sandboxes.create', 'body', body);
    return 'none';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

test('of several shapes the one that was meant is held against a value', () => {
  const tmpfs = { type: 'tmpfs', guest: '/x' };
  const rule = { direction: 'egress', action: 'allow' };
  const cases: readonly [Readonly<Record<string, unknown>>, string][] = [
    [{ mounts: [{ ...tmpfs, size_mib: 'a' }] }, 'mounts[0].size_mib must be integer or null'],
    [{ mounts: [tmpfs, { type: 'bind', guest: '/y' }] }, 'mounts[1].host is required'],
    [{ mounts: [{ ...tmpfs, host: 'h' }] }, 'mounts[0].host is not a known field'],
    [{ mounts: [{ guest: '/x' }] }, 'mounts[0].type is required'],
    [{ mounts: ['x'] }, 'mounts[0] must be object'],
    [{ registry: { mode: 'inline', username: 'u' } }, 'registry.password is required'],
    [{ patches: [{ type: 'text', path: '/x' }] }, 'patches[0].content is required'],
    [{ patches: [{ type: 'file', path: '/x', content: [1, 300] }] }, 'patches[0].content[1] must be <= 255'],
    [
      { network: { policy: { rules: [{ ...rule, destination: { cidr: 5 } }] } } },
      'network.policy.rules[0].destination.cidr must be string',
    ],
    [
      { network: { policy: { rules: [{ ...rule, destination: {} }] } } },
      'network.policy.rules[0].destination must have one of the fields cidr, domain, domain_suffix, group',
    ],
    [{ labels: { a: 1 } }, 'labels.a must be string'],
  ];
  for (const [fields, problem] of cases) assert.equal(problemOf(fields), problem);
});

test('the problem of an invalid enum value lists the valid ones', () => {
  assert.equal(problemOf({ pull_policy: 'x' }), 'pull_policy must be one of "if_missing", "always", "never"');
  assert.equal(
    problemOf({ image: { type: 'tar' } }),
    'image.type must be one of "oci", "bind", "disk_image"',
  );
  assert.equal(
    problemOf({ registry: { mode: 'x' } }),
    'registry.mode must be one of "auto", "anonymous", "specific", "inline"',
  );
});

test('an unknown field is named before what is missing, and where it is', () => {
  assert.equal(problemOf({ resources: { cpus: 1 } }), 'resources.cpus is not a known field');
  assert.equal(problemOf({ env: [{ key: 'A', val: 'b' }] }), 'env[0].val is not a known field');
  assert.equal(problemOf({ env: [{ key: 'A' }] }), 'env[0].value is required');
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, 1]));
  assert.equal(problemOf(many), 'k0, k1, k2, k3, k4 is not a known field');
});
