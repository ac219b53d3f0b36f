import { existsSync } from 'node:fs';
import { CGROUP_PARENT, treeOf, type CgroupLayout } from './cgroup-layout.ts';
import { readKernelFile } from './kernel-file.ts';

const PATH = /^(?:\/[A-Za-z0-9_:@-][A-Za-z0-9_.:@-]*){1,16}$/;
const MAX_LENGTH = 512;
/** The controllers by which sandboxes are limited and measured. */
const CONTROLLERS = ['cpu', 'cpuset', 'memory', 'pids'] as const;

/** Why sandboxes cannot have their cgroups below this one; undefined: they can. `parent` is a path in the trees of the host. */
export function findParentProblem(layout: CgroupLayout, parent: string): string | undefined {
  if (!PATH.test(parent) || parent.length > MAX_LENGTH)
    return 'must be the path of a cgroup, such as /kubepods/burstable/pod1';
  // SAFETY: the engine's own cgroups, where a name could be that of another sandbox.
  if (`${parent.split('/')[1]}-`.startsWith(`${CGROUP_PARENT}-`))
    return `must not be in /${CGROUP_PARENT}, whose cgroups are the engine's own`;
  for (const controller of CONTROLLERS) {
    const mountpoint = treeOf(layout, controller)?.mountpoint;
    if (mountpoint === undefined) continue;
    // SAFETY: the pattern has no `..`, so the joined path stays inside the tree.
    if (!existsSync(`${mountpoint}${parent}/cgroup.procs`))
      return `${parent} is no cgroup of this host (${controller}); make it before the sandbox`;
  }
  const unified = layout.version === 2 ? layout.trees[0]?.mountpoint : undefined;
  const processes = unified === undefined ? '' : (readKernelFile(`${unified}${parent}/cgroup.procs`) ?? '');
  return processes === ''
    ? undefined
    : `${parent} has processes of its own; limits hold below empty cgroups alone`;
}
