import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { BoundedGroup, removeEmptyGroups, tenantsMemoryBytes } from './bounded-group.ts';
import { readCgroupLayout, treeOf } from './cgroup-layout.ts';

const LIMITS = { cpus: 1.5, memoryBytes: 64 * 1024 * 1024, threads: 32 };

test('on a version 2 host a group has its limits, and its parents delegate the controllers', (t) => {
  const mountpoint = mkdtempSync(`${tmpdir()}/svc-bounded-`);
  t.after(() => rmSync(mountpoint, { recursive: true }));
  const layout = {
    version: 2,
    trees: [{ mountpoint, version: 2, controllers: ['cpu', 'memory', 'pids', 'io'] }],
  } as const;
  // The kernel makes these files with the folder.
  const folder = `${mountpoint}/svc-tenants/one`;
  mkdirSync(folder, { recursive: true });
  const names = ['cpu.weight', 'cpu.max', 'memory.max', 'pids.max', 'cgroup.procs'];
  for (const name of names) writeFileSync(`${folder}/${name}`, '');
  writeFileSync(`${mountpoint}/svc-tenants/memory.max`, '');
  new BoundedGroup('one', LIMITS, layout).admit(4711);
  const read = (path: string) => readFileSync(`${mountpoint}/${path}`, 'utf8');
  assert.deepEqual(
    names.map((name) => read(`svc-tenants/one/${name}`)),
    ['100', '150000 100000', '67108864', '32', '4711'],
  );
  assert.equal(read('svc-tenants/memory.max'), String(tenantsMemoryBytes()));
  for (const place of ['', 'svc-tenants/'])
    assert.equal(read(`${place}cgroup.subtree_control`), '+cpu +memory +pids');
});

test('a process of this host is in its group, limited, until it ends and the group is removed', async (t) => {
  const layout = readCgroupLayout();
  const tree = treeOf(layout, 'memory');
  assert.ok(tree);
  const group = new BoundedGroup(`test-${process.pid}`, LIMITS, layout);
  const folder = `${tree.mountpoint}/svc-tenants/test-${process.pid}`;
  const child = spawn('sleep', ['1000']);
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  group.admit(child.pid ?? 0);
  const file = tree.version === 2 ? 'memory.max' : 'memory.limit_in_bytes';
  assert.equal(Number(readFileSync(`${folder}/${file}`, 'utf8')), LIMITS.memoryBytes);
  const together = Number(readFileSync(`${tree.mountpoint}/svc-tenants/${file}`, 'utf8'));
  assert.equal(together, tenantsMemoryBytes(), 'all of them have a part of the host');
  if (tree.version === 1)
    assert.equal(
      Number(readFileSync(`${folder}/memory.kmem.tcp.limit_in_bytes`, 'utf8')),
      LIMITS.memoryBytes / 8,
      'and what its sockets hold is counted',
    );
  assert.match(
    readFileSync(`/proc/${child.pid}/cgroup`, 'utf8'),
    new RegExp(`svc-tenants/test-${process.pid}`),
  );
  await removeEmptyGroups(`test-${process.pid}`, layout);
  assert.ok(existsSync(folder), 'a group with a process stays');
  child.kill('SIGKILL');
  await once(child, 'exit');
  await group.remove();
  await group.remove();
  assert.ok(!existsSync(folder));
});

test('leftover groups of an earlier engine are removed, and groups of other engines stay', async () => {
  const [own, other] = [`a${process.pid}-one`, `b${process.pid}-one`].map(
    (name) => new BoundedGroup(name, LIMITS),
  );
  const tree = treeOf(readCgroupLayout(), 'memory');
  assert.ok(own && other && tree);
  const child = spawn('sleep', ['1000']);
  await once(child, 'spawn');
  own.admit(child.pid ?? 0);
  other.admit(child.pid ?? 0);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await removeEmptyGroups(`a${process.pid}-`);
  const left = (name: string) => existsSync(`${tree.mountpoint}/svc-tenants/${name}${process.pid}-one`);
  assert.deepEqual([left('a'), left('b')], [false, true]);
  await other.remove();
});

test('all groups have a quarter of the host, and a GiB at least', () => {
  const gib = 2 ** 30;
  assert.deepEqual(
    [1, 8, 64].map((host) => tenantsMemoryBytes(host * gib) / gib),
    [1, 2, 16],
  );
});
