import { mkdirSync, writeFileSync } from 'node:fs';
import { isErrno } from '@svc/contract/errno';
import { readKernelFile } from './kernel-file.ts';

/**
 * Makes the parent of our cgroups in version 1's tree of CPU sets, and gives it all that the tree has. A new cgroup there has no CPUs,
 * so of two runtimes that start the first two sandboxes of a host at once, one would find a parent that the other had made and not
 * yet filled, and fail.
 */
export function fillCpusetParent(tree: string, parent: string): void {
  try {
    mkdirSync(parent, { recursive: true });
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const isEmpty = (readKernelFile(`${parent}/${file}`) ?? '').trim() === '';
      if (isEmpty) writeFileSync(`${parent}/${file}`, readKernelFile(`${tree}/${file}`) ?? '');
    }
  } catch (error) {
    // A tree that cannot be written to: the runtime says so in its own words.
    if (!isErrno(error, 'EROFS', 'EACCES')) throw error;
  }
}
