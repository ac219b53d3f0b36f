import { readdirSync, readFileSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';
import { readKernelFile } from './kernel-file.ts';

/** The parent of all cgroups of sandboxes in each tree of the host. */
export const CGROUP_PARENT = 'svc';

/** One mounted cgroup hierarchy. */
export interface CgroupTree {
  readonly mountpoint: string;
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
}

/**
 * How this host arranges cgroups. Version 1 means that controllers have trees of their own; a version 2 tree may be mounted beside
 * them ("hybrid") and is then among `trees`. Version 2 means one tree for everything.
 */
export interface CgroupLayout {
  readonly version: 1 | 2;
  readonly trees: readonly CgroupTree[];
}

export function readCgroupLayout(): CgroupLayout {
  const unified = (mountpoint: string) => readKernelFile(`${mountpoint}/cgroup.controllers`) ?? '';
  return parseCgroupLayout(readFileSync('/proc/self/mountinfo', 'latin1'), unified);
}

/** `unifiedControllers` gives the text of cgroup.controllers of the version 2 tree at a mount point. */
export function parseCgroupLayout(
  mountinfo: string,
  unifiedControllers: (mountpoint: string) => string,
): CgroupLayout {
  const trees: CgroupTree[] = [];
  let version: 1 | 2 = 2;
  for (const line of mountinfo.split('\n')) {
    const [mount = '', device = ''] = line.split(' - ');
    const [fstype, , superOptions = ''] = device.split(' ');
    const [, , , root, mountpoint = ''] = mount.split(' ');
    // Other mounts show only a part of a tree, for instance to a container on this host.
    if (root !== '/' || !mountpoint.startsWith('/sys/fs/cgroup')) continue;
    if (fstype === 'cgroup') {
      version = 1;
      const controllers = superOptions.split(',').filter((option) => !GENERIC.has(option));
      trees.push({ mountpoint, version: 1, controllers });
    } else if (fstype === 'cgroup2') {
      trees.push({ mountpoint, version: 2, controllers: unifiedControllers(mountpoint).trim().split(' ') });
    }
  }
  return { version, trees };
}

const GENERIC = new Set(['rw', 'ro', 'xattr', 'clone_children', 'noprefix']);

/** The controllers that our limits need. */
const NEEDED = ['cpu', 'cpuset', 'memory', 'pids'] as const;

export function missingControllers(layout: CgroupLayout): readonly string[] {
  return NEEDED.filter((controller) => treeOf(layout, controller) === undefined);
}

export function treeOf(layout: CgroupLayout, controller: string): CgroupTree | undefined {
  return layout.trees.find((tree) => tree.controllers.includes(controller));
}

/** The names of the cgroups below one; empty when it does not exist. */
export function childrenOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}
