import type { CgroupTree } from './cgroup-layout.ts';

/** Path of our own cgroup in a tree, found by one of its controllers. `own` is the text of /proc/self/cgroup. */
export function ownPath(tree: CgroupTree, controller: string, own: string): string | undefined {
  for (const line of own.split('\n')) {
    const [number, controllers = '', ...path] = line.split(':');
    const isIt = tree.version === 2 ? number === '0' : controllers.split(',').includes(controller);
    if (isIt) return path.join(':');
  }
  return undefined;
}
