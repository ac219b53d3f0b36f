import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { TENANT_GROUP } from './bounded-group.ts';
import { CGROUP_PARENT, readCgroupLayout, treeOf } from './cgroup-layout.ts';
import type { CgroupLayout, CgroupTree } from './cgroup-layout.ts';
import { CPU_WEIGHT } from './cpu-weight.ts';
import { ownPath } from './own-path.ts';

/** Where our own processes are while nobody has put them elsewhere. */
const OWN_GROUP = 'svc-own';
/** Where those of them go that work for one guest or tenant, wherever the others are (host/src/serve/own-share.c). */
const WORK_GROUP = 'svc-work';

const OWN_WEIGHT = { 1: 8192, 2: 800 } as const;
/** How many times as much as all sandboxes together weighs what somebody put us into. */
const LEAD = 8;

/**
 * Gives this process, and what it starts from now on, eight times the weight of all sandboxes together at least, on every CPU: whatever
 * they compute, those who serve them get the processor when they need it. Only from the root of the tree: whoever put us into a cgroup, such
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
 * Makes all sandboxes together weigh as much as a usual cgroup or, where somebody put us into another, an eighth of the one at the top of
 * the tree that it lies in: there nobody but its own members can take the processor from us. What works for one of them weighs as much. In
 * the root there is nothing to compare with. Returns what they weigh, or null.
 * @throws when the tree cannot be written to
 */
export function outweighSandboxes(
  layout: CgroupLayout = readCgroupLayout(),
  own: string = readFileSync('/proc/self/cgroup', 'latin1'),
): number | null {
  const tree = treeOf(layout, 'cpu');
  if (tree === undefined) return null;
  const top = ownPath(tree, 'cpu', own)?.split('/')[1] ?? '';
  if (top === '' || top === CGROUP_PARENT) return null;
  const { file, usual, least } = CPU_WEIGHT[tree.version];
  const weightOfTop = () => Number(readFileSync(`${tree.mountpoint}/${top}/${file}`, 'latin1'));
  const weight = top === OWN_GROUP ? usual : Math.max(least, Math.floor(weightOfTop() / LEAD));
  for (const group of [CGROUP_PARENT, WORK_GROUP, TENANT_GROUP]) makeGroup(tree, group, weight);
  return weight;
}

function join(tree: CgroupTree): void {
  const folder = makeGroup(tree, OWN_GROUP, OWN_WEIGHT[tree.version]);
  // SAFETY: 0 is this process, with all of its threads.
  writeFileSync(`${folder}/cgroup.procs`, '0');
}

function makeGroup(tree: CgroupTree, name: string, weight: number): string {
  const folder = `${tree.mountpoint}/${name}`;
  mkdirSync(folder, { recursive: true });
  if (tree.version === 2) writeFileSync(`${tree.mountpoint}/cgroup.subtree_control`, '+cpu');
  writeFileSync(`${folder}/${CPU_WEIGHT[tree.version].file}`, String(weight));
  return folder;
}
