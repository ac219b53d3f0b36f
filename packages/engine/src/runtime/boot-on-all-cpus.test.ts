import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { treeOf } from '../cgroup/cgroup-layout.ts';
import { CGROUP_PARENT, Cgroups } from '../cgroup/cgroups.ts';
import { bootOnAllCpus } from './boot-on-all-cpus.ts';
import { allowedCpus } from './cpu-set.ts';

const cgroups = new Cgroups();
const tree = treeOf(cgroups.layout, 'cpuset') ?? assert.fail('this test needs the controller cpuset');
const parent = join(tree.mountpoint, CGROUP_PARENT);

/** A cgroup that is pinned to one CPU. */
function pinned(t: TestContext): string {
  const handle = `boottest-${randomBytes(4).toString('hex')}`;
  const folder = join(parent, handle);
  mkdirSync(folder, { recursive: true });
  t.after(async () => {
    await cgroups.kill(handle);
    await cgroups.remove(handle);
  });
  if (tree.version === 2) {
    for (const above of [tree.mountpoint, parent])
      writeFileSync(join(above, 'cgroup.subtree_control'), '+cpuset');
  } else {
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      inherit(join(tree.mountpoint, file), join(parent, file));
      inherit(join(parent, file), join(folder, file));
    }
  }
  writeFileSync(join(folder, 'cpuset.cpus'), '0');
  return handle;
}

/** What a new cgroup of version 1 must be given before it takes a process. */
function inherit(from: string, to: string): void {
  if (readFileSync(to, 'utf8').trim() === '') writeFileSync(to, readFileSync(from));
}

/** Runs something under another name in the cgroup, and returns how many CPUs it may use. */
function run(handle: string, name: string): () => number {
  const { pid } = spawn('sleep', ['60'], { argv0: name, stdio: 'ignore' });
  writeFileSync(join(parent, handle, 'cgroup.procs'), String(pid));
  return () => allowedCpus(readFileSync(`/proc/${pid}/status`, 'latin1')).length;
}

test('the pin is lifted once the kernel of the sandbox is there, for good', async (t) => {
  const handle = pinned(t);
  const launcher = run(handle, 'runsc');
  assert.equal(launcher(), 1);
  const end = bootOnAllCpus(cgroups, handle);
  const kernel = run(handle, 'runsc-sandbox');
  await waitUntil(() => kernel() > 1, 'the kernel may use all CPUs');
  assert.equal(launcher(), kernel());
  end();
  assert.ok(kernel() > 1);
});

test('when a start has ended its pin is lifted, and nobody looks any more', async (t) => {
  const [handle, other, late] = [pinned(t), pinned(t), pinned(t)];
  const launcher = run(handle, 'runsc');
  bootOnAllCpus(cgroups, handle)();
  assert.ok(launcher() > 1);
  bootOnAllCpus(cgroups, 'nobody')();
  const ends = [bootOnAllCpus(cgroups, late), bootOnAllCpus(cgroups, other)] as const;
  ends[0]();
  cgroups.pin(late, '0');
  const kernels = [run(late, 'runsc-sandbox'), run(other, 'runsc-sandbox')] as const;
  // Who was asked first would have looked first.
  await waitUntil(() => kernels[1]() > 1, 'the other may use all CPUs');
  assert.equal(kernels[0](), 1);
  ends[1]();
});
