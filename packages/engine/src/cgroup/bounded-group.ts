import { mkdirSync, writeFileSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { isErrno } from '@svc/contract/errno';
import {
  CGROUP_PARENT,
  childrenOf,
  readCgroupLayout,
  treeOf,
  type CgroupLayout,
  type CgroupTree,
} from './cgroup-layout.ts';
import { CPU_WEIGHT } from './cpu-weight.ts';
import { readKernelFile, writeKernelFile } from './kernel-file.ts';
import { untilDone } from './until-done.ts';

/**
 * The parent of the cgroups of helper processes that serve one tenant each. Together they have the CPU weight of all sandboxes together and
 * a share of the host's memory; when that is full the kernel kills the largest of them.
 */
export const TENANT_GROUP = `${CGROUP_PARENT}-tenants`;
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
const MEMORY_FILE = { 1: 'memory.limit_in_bytes', 2: 'memory.max' } as const;
const PERIOD_MICROSECONDS = 100_000;
const MIB = 1024 * 1024;
const TENANTS_SHARE = 4;
const LEAST_TENANTS_BYTES = 1024 * MIB;
/** Share of memory for socket buffers, like the kernel's own default. */
const SOCKET_SHARE = 8;

/** Memory limit of all of them together. */
export function tenantsMemoryBytes(hostBytes = totalmem()): number {
  return Math.max(LEAST_TENANTS_BYTES, Math.floor(hostBytes / TENANTS_SHARE / MIB) * MIB);
}

export interface GroupLimits {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly threads: number;
}

/**
 * A cgroup with its own limits for a helper process that serves one tenant, on hosts with version 1, hybrid and version 2 trees.
 * A limit whose controller the host lacks is not applied.
 */
export class BoundedGroup {
  readonly #name: string;
  readonly #limits: GroupLimits;
  readonly #layout: CgroupLayout;

  /** `name` is safe as a folder name. */
  constructor(name: string, limits: GroupLimits, layout: CgroupLayout = readCgroupLayout()) {
    this.#name = name;
    this.#limits = limits;
    this.#layout = layout;
  }

  /** Moves a process with all its threads into the cgroup; makes the cgroup when it is missing. */
  admit(pid: number): void {
    for (const tree of this.#trees()) {
      const folder = this.#make(tree);
      for (const [file, value] of limitsOf(tree, this.#limits)) writeKernelFile(`${folder}/${file}`, value);
      // SAFETY: a child of the engine that it started just before.
      writeKernelFile(`${folder}/cgroup.procs`, String(pid));
    }
  }

  /** Removes the cgroup, whose processes have ended. Succeeds when it does not exist. */
  async remove(): Promise<void> {
    await Promise.all(
      this.#trees().map((tree) => removeGroup(`${tree.mountpoint}/${TENANT_GROUP}/${this.#name}`)),
    );
  }

  #trees(): readonly CgroupTree[] {
    return [...new Set(CONTROLLERS.flatMap((controller) => treeOf(this.#layout, controller) ?? []))];
  }

  #make({ mountpoint, version, controllers }: CgroupTree): string {
    const parent = `${mountpoint}/${TENANT_GROUP}`;
    const folder = `${parent}/${this.#name}`;
    mkdirSync(folder, { recursive: true });
    if (version === 2) {
      const wanted = CONTROLLERS.filter((controller) => controllers.includes(controller));
      const change = wanted.map((controller) => `+${controller}`).join(' ');
      for (const place of [mountpoint, parent]) writeFileSync(`${place}/cgroup.subtree_control`, change);
    }
    if (controllers.includes('memory'))
      writeKernelFile(`${parent}/${MEMORY_FILE[version]}`, String(tenantsMemoryBytes()));
    return folder;
  }
}

/** Removes cgroups with this name prefix that hold no process: leftovers of an earlier engine. */
export async function removeEmptyGroups(
  prefix: string,
  layout: CgroupLayout = readCgroupLayout(),
): Promise<void> {
  for (const { mountpoint } of layout.trees) {
    const parent = `${mountpoint}/${TENANT_GROUP}`;
    for (const name of childrenOf(parent))
      if (name.startsWith(prefix) && (readKernelFile(`${parent}/${name}/cgroup.procs`) ?? '') === '')
        await removeGroup(`${parent}/${name}`);
  }
}

type Setting = readonly [file: string, value: string];

function limitsOf(tree: CgroupTree, limits: GroupLimits): readonly Setting[] {
  const { cpus, memoryBytes, threads } = limits;
  const quota = Math.round(cpus * PERIOD_MICROSECONDS);
  const { file, usual } = CPU_WEIGHT[tree.version];
  const all: Readonly<Record<(typeof CONTROLLERS)[number], readonly Setting[]>> = {
    cpu: [
      [file, String(usual)],
      ...(tree.version === 2
        ? [['cpu.max', `${quota} ${PERIOD_MICROSECONDS}`] as const]
        : ([
            ['cpu.cfs_period_us', String(PERIOD_MICROSECONDS)],
            ['cpu.cfs_quota_us', String(quota)],
          ] as const)),
    ],
    memory: [
      [MEMORY_FILE[tree.version], String(memoryBytes)],
      // Version 2 includes socket memory in the memory limit.
      ...(tree.version === 2
        ? []
        : [['memory.kmem.tcp.limit_in_bytes', String(Math.floor(memoryBytes / SOCKET_SHARE))] as const]),
    ],
    pids: [['pids.max', String(threads)]],
  };
  return CONTROLLERS.flatMap((controller) => (tree.controllers.includes(controller) ? all[controller] : []));
}

async function removeGroup(path: string): Promise<void> {
  await untilDone('a cgroup', async () => {
    try {
      await rmdir(path);
      return true;
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return true;
      // The last process is still exiting.
      if (isErrno(error, 'EBUSY')) return false;
      throw error;
    }
  });
}
