import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { CgroupLayout } from './cgroup-layout.ts';
import { findParentProblem } from './cgroup-parent.ts';
import { Cgroups } from './cgroups.ts';

const CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids'];

/** A host with `/pods/one` in each tree. */
function host(t: TestContext, version: 1 | 2): CgroupLayout {
  const folder = mkdtempSync(join(tmpdir(), 'svc-cgroup-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const trees =
    version === 2
      ? [{ mountpoint: join(folder, 'all'), version, controllers: CONTROLLERS }]
      : CONTROLLERS.map((name) => ({ mountpoint: join(folder, name), version, controllers: [name] }));
  for (const { mountpoint } of trees) {
    mkdirSync(join(mountpoint, 'pods/one'), { recursive: true });
    writeFileSync(join(mountpoint, 'pods/one/cgroup.procs'), '');
  }
  return { version, trees };
}

for (const version of [1, 2] as const) {
  test(`a parent exists in every tree of version ${version}, and is none of the engine's own cgroups`, (t) => {
    const layout = host(t, version);
    assert.equal(findParentProblem(layout, '/pods/one'), undefined);
    for (const path of ['', '/', 'pods/one', '/pods/../svc', '/pods/one/', '//pods', '/.pods', '/pods/one\n'])
      assert.match(findParentProblem(layout, path) ?? '', /^must be the path of a cgroup/, path);
    for (const path of ['/svc', '/svc/0123456789abcdef', '/svc-tenants/x'])
      assert.match(findParentProblem(layout, path) ?? '', /^must not be in \/svc/, path);
    const [first] = layout.trees;
    assert.ok(first);
    rmSync(join(first.mountpoint, 'pods'), { recursive: true });
    assert.match(findParentProblem(layout, '/pods/one') ?? '', /is no cgroup of this host \(cpu\)/);
  });
}

test('on version 2 a parent has no processes of its own, since limits would not hold below it', (t) => {
  for (const version of [1, 2] as const) {
    const layout = host(t, version);
    for (const { mountpoint } of layout.trees)
      writeFileSync(join(mountpoint, 'pods/one/cgroup.procs'), '7\n');
    const problem = findParentProblem(layout, '/pods/one');
    if (version === 1) assert.equal(problem, undefined);
    else assert.match(problem ?? '', /has processes of its own/);
  }
});

test('a sandbox is found below the parent that it was placed under, until it is removed', async (t) => {
  for (const version of [1, 2] as const) {
    const layout = host(t, version);
    const cgroups = new Cgroups(layout);
    for (const { mountpoint } of layout.trees) {
      mkdirSync(join(mountpoint, 'pods/one/box'));
      writeFileSync(join(mountpoint, 'pods/one/box/pids.events'), 'max 3\n');
    }
    assert.equal(cgroups.forkRefusals('box'), 0);
    cgroups.place('box', '/pods/one');
    assert.deepEqual([cgroups.forkRefusals('box'), cgroups.hasOtherParents()], [3, true]);
    for (const { mountpoint } of layout.trees) rmSync(join(mountpoint, 'pods/one/box/pids.events'));
    await cgroups.remove('box');
    assert.deepEqual([cgroups.pathOf('box'), cgroups.hasOtherParents()], ['/svc/box', false]);
  }
});
