import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { CGROUP_PARENT } from './cgroup-layout.ts';
import { Cgroups } from './cgroups.ts';

test('the parent gets all CPUs and memory nodes of the tree before a runtime looks for them', (t) => {
  const { cgroups, read } = cpusetTree(t);
  cgroups.makeParent('one');
  assert.equal(read('cpuset.cpus'), '0-3\n');
  assert.equal(read('cpuset.mems'), '0\n');
});

test('a parent that another runtime has made and not yet filled is filled', (t) => {
  const { cgroups, parent, read } = cpusetTree(t);
  mkdirSync(parent);
  writeFileSync(join(parent, 'cpuset.cpus'), '\n');
  cgroups.makeParent('one');
  assert.equal(read('cpuset.cpus'), '0-3\n');
});

test('a parent that the operator has limited to some CPUs stays so', (t) => {
  const { cgroups, parent, read } = cpusetTree(t);
  mkdirSync(parent);
  writeFileSync(join(parent, 'cpuset.cpus'), '2\n');
  cgroups.makeParent('one');
  assert.equal(read('cpuset.cpus'), '2\n');
});

function cpusetTree(t: TestContext) {
  const mountpoint = mkdtempSync(join(tmpdir(), 'svc-cpuset-'));
  t.after(() => rmSync(mountpoint, { recursive: true, force: true }));
  writeFileSync(join(mountpoint, 'cpuset.cpus'), '0-3\n');
  writeFileSync(join(mountpoint, 'cpuset.mems'), '0\n');
  const parent = join(mountpoint, CGROUP_PARENT);
  const cgroups = new Cgroups({ version: 1, trees: [{ mountpoint, version: 1, controllers: ['cpuset'] }] });
  return { cgroups, parent, read: (file: string) => readFileSync(join(parent, file), 'latin1') };
}
