import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { CGROUP_PARENT, readCgroupLayout, treeOf } from './cgroup-layout.ts';
import type { CgroupLayout, CgroupTree } from './cgroup-layout.ts';
import { ownPath } from './own-path.ts';

/** Where our own processes are while nobody has put them elsewhere. */
const OWN_GROUP = 'svc-own';

/** A cgroup has 1024 (version 1) or 100 (version 2) unless told otherwise. */
const WEIGHTS = {
  1: { file: 'cpu.shares', own: 8192, lowest: 2 },
  2: { file: 'cpu.weight', own: 800, lowest: 1 },
} as const;
/** How many times as much as all sandboxes together we weigh. */
const LEAD = 8;

/**
 * Gives this process, and what it starts from now on, eight times the weight of all sandboxes together, on every CPU: whatever they
 * compute, those who serve them get the processor when they need it. Only from the root of the tree: whoever put us into a cgroup, such
 * as systemd, has decided about our share there. Returns whether we have it.
 * @throws when the tree cannot be written to
 */
export function takeOwnShare(
  layout: CgroupLayout = readCgroupLayout(),
  own: string = readFileSync('/proc/self/cgroup', 'latin1'),
): boolean {
  const tree = treeOf(layout, 'cpu');
  if (tree === undefined) return false;
  const path = ownPath(tree, 'cpu', own);
  if (path === `/${OWN_GROUP}`) return true;
  if (path !== '/') return false;
  join(tree);
  return true;
}

/**
 * Makes all sandboxes together weigh an eighth of the cgroup at the top of the tree that we are in, ours or one that somebody put us into:
 * there nobody but its own members can take the processor from us. In the root there is nothing to compare with. Returns whether it did.
 * @throws when the tree cannot be written to
 */
export function outweighSandboxes(
  layout: CgroupLayout = readCgroupLayout(),
  own: string = readFileSync('/proc/self/cgroup', 'latin1'),
): boolean {
  const tree = treeOf(layout, 'cpu');
  if (tree === undefined) return false;
  const top = ownPath(tree, 'cpu', own)?.split('/')[1] ?? '';
  if (top === '' || top === CGROUP_PARENT) return false;
  const { file, lowest } = WEIGHTS[tree.version];
  mkdirSync(`${tree.mountpoint}/${CGROUP_PARENT}`, { recursive: true });
  if (tree.version === 2) writeFileSync(`${tree.mountpoint}/cgroup.subtree_control`, '+cpu');
  const weight = Number(readFileSync(`${tree.mountpoint}/${top}/${file}`, 'latin1'));
  const ofSandboxes = Math.max(lowest, Math.floor(weight / LEAD));
  writeFileSync(`${tree.mountpoint}/${CGROUP_PARENT}/${file}`, String(ofSandboxes));
  return true;
}

function join(tree: CgroupTree): void {
  const folder = `${tree.mountpoint}/${OWN_GROUP}`;
  const { file, own } = WEIGHTS[tree.version];
  mkdirSync(folder, { recursive: true });
  if (tree.version === 2) writeFileSync(`${tree.mountpoint}/cgroup.subtree_control`, '+cpu');
  writeFileSync(`${folder}/${file}`, String(own));
  // SAFETY: 0 is this process, with all of its threads.
  writeFileSync(`${folder}/cgroup.procs`, '0');
}
