import { existsSync, writeFileSync, mkdirSync } from 'node:fs';
import { readdir, rmdir } from 'node:fs/promises';
import { limitBytes, processIds, singleNumber, valueOf } from './cgroup-files.ts';
import { findParentProblem } from './cgroup-parent.ts';
import { CGROUP_PARENT, childrenOf, readCgroupLayout, treeOf, type CgroupLayout } from './cgroup-layout.ts';
import { isErrno } from '@svc/contract/errno';
import { readKernelFile, writeKernelFile } from './kernel-file.ts';
import { killProcess } from './kill-process.ts';
import { untilDone } from './until-done.ts';

export interface CgroupUsage {
  /** CPU time used since the cgroup was made. */
  readonly cpuMicroseconds: number;
  /** Without page cache that the kernel can drop at once. */
  readonly memoryBytes: number;
  /** Host processes; threads do not count. With gVisor these are gVisor's own processes. */
  readonly processes: number;
}

/**
 * The cgroups of our sandboxes, one per sandbox, named by its handle, under `/svc` or the parent that it was placed under, on hosts with
 * version 1, hybrid and version 2 trees. Runtimes create them; this class reads, empties and removes them. A read costs some 10 µs per file and uses no thread.
 */
export class Cgroups {
  readonly layout: CgroupLayout;
  readonly #cpu: string | undefined;
  readonly #quota: string | undefined;
  readonly #memory: string | undefined;
  readonly #pids: string | undefined;
  readonly #unified: string | undefined;
  readonly #mountpoints: readonly string[];
  /** Parents other than `/svc`, by handle. */
  readonly #parents = new Map<string, string>();

  constructor(layout: CgroupLayout = readCgroupLayout()) {
    this.layout = layout;
    const folderOf = (controller: string) => treeOf(layout, controller)?.mountpoint;
    this.#cpu = folderOf(layout.version === 1 ? 'cpuacct' : 'cpu');
    this.#quota = folderOf('cpu');
    this.#memory = folderOf('memory');
    this.#pids = folderOf('pids');
    this.#unified = layout.trees.find((tree) => tree.version === 2)?.mountpoint;
    this.#mountpoints = layout.trees.map(({ mountpoint }) => mountpoint);
  }

  /** See `findParentProblem`. */
  parentProblem(parent: string): string | undefined {
    return findParentProblem(this.layout, parent);
  }

  /** From now on the cgroup of this sandbox is below `parent`, a path in the trees; null: below `/svc`. Call it again after a restart. */
  place(handle: string, parent: string | null): void {
    if (parent === null) this.#parents.delete(handle);
    else this.#parents.set(handle, parent);
  }

  /** The path in the trees of the cgroup of a sandbox. */
  pathOf(handle: string): string {
    return `${this.#parents.get(handle) ?? `/${CGROUP_PARENT}`}/${handle}`;
  }

  /** Called before every start: host tooling may have removed the parent since the last one. Costs some 30 µs. */
  makeParent(handle: string): void {
    const tree = treeOf(this.layout, 'cpuset');
    if (tree?.version === 1 && !this.#parents.has(handle))
      fillCpusetParent(tree.mountpoint, `${tree.mountpoint}/${CGROUP_PARENT}`);
  }

  /** Whether there are sandboxes that the figures of `/svc` do not have. */
  hasOtherParents(): boolean {
    return this.#parents.size > 0;
  }

  /** Undefined when there is no such cgroup. Figures whose controller this host lacks are 0. */
  usage(handle: string): CgroupUsage | undefined {
    const memory = `${this.#memory}${this.pathOf(handle)}`;
    const isV1 = this.layout.version === 1;
    const used = readKernelFile(`${memory}/${isV1 ? 'memory.usage_in_bytes' : 'memory.current'}`);
    if (used === undefined) return undefined;
    const droppable = valueOf(
      readKernelFile(`${memory}/memory.stat`) ?? '',
      isV1 ? 'total_inactive_file' : 'inactive_file',
    );
    return {
      cpuMicroseconds: this.cpuMicroseconds(handle),
      memoryBytes: Math.max(0, (singleNumber(used) ?? 0) - (droppable ?? 0)),
      processes: processIds(readKernelFile(`${this.#pids}${this.pathOf(handle)}/cgroup.procs`) ?? '').length,
    };
  }

  /** CPU time used since the cgroup was made; 0 when it is gone. */
  cpuMicroseconds(handle: string): number {
    if (this.layout.version === 2) {
      return valueOf(readKernelFile(`${this.#cpu}${this.pathOf(handle)}/cpu.stat`) ?? '', 'usage_usec') ?? 0;
    }
    return Math.round(
      (singleNumber(readKernelFile(`${this.#cpu}${this.pathOf(handle)}/cpuacct.usage`) ?? '') ?? 0) / 1000,
    );
  }

  /** Null when its memory is not limited. */
  memoryLimitBytes(handle: string): number | null {
    const file = this.layout.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    return limitBytes(readKernelFile(`${this.#memory}${this.pathOf(handle)}/${file}`) ?? '');
  }

  /** Processes that the kernel killed because the sandbox was out of memory; 0 when the cgroup is gone. */
  oomKills(handle: string): number {
    const file = this.layout.version === 1 ? 'memory.oom_control' : 'memory.events';
    return valueOf(readKernelFile(`${this.#memory}${this.pathOf(handle)}/${file}`) ?? '', 'oom_kill') ?? 0;
  }

  /** Forks that the kernel refused because the sandbox had as many processes as it may; 0 when the cgroup is gone. */
  forkRefusals(handle: string): number {
    return valueOf(readKernelFile(`${this.#pids}${this.pathOf(handle)}/pids.events`) ?? '', 'max') ?? 0;
  }

  /** Host process ids of everything in the cgroup, zombies excluded. */
  processIds(handle: string): readonly number[] {
    return [...new Set(this.#mountpoints.flatMap((tree) => this.#processesIn(tree, handle)))];
  }

  /** Ends every process of the cgroup; returns when none is left. Succeeds when there is no such cgroup. */
  async kill(handle: string): Promise<void> {
    await untilDone(`a process of ${handle}`, () => {
      // Reads the first tree that lists processes. Every tree lists all of them, or a later round reads the other trees.
      const trees = this.#mountpoints.values().map((tree) => this.#processesIn(tree, handle));
      const pids = trees.find((found) => found.length > 0);
      if (pids === undefined) return true;
      // The kernel kills the whole cgroup at once, forks in progress included; kernels before 5.14 have no such file.
      if (this.#unified !== undefined && existsSync(`${this.#unified}${this.pathOf(handle)}`))
        writeKernelFile(`${this.#unified}${this.pathOf(handle)}/cgroup.kill`, '1');
      // SAFETY: read a moment ago from the cgroup of one sandbox, so each names a process of that sandbox.
      for (const pid of pids) killProcess(pid);
      return false;
    });
  }

  /** Removes the cgroup from every tree. It must hold no process; succeeds when it is gone. */
  async remove(handle: string): Promise<void> {
    await Promise.all(this.#mountpoints.map((tree) => removeTree(`${tree}${this.pathOf(handle)}`)));
    this.#parents.delete(handle);
  }

  /** Names of all cgroups under `/svc`, in any tree. */
  list(): readonly string[] {
    return [...new Set(this.#mountpoints.flatMap((tree) => childrenOf(`${tree}/${CGROUP_PARENT}`)))];
  }

  /** Allows a CPU burst of this many microseconds at most. The average share stays the same. */
  allowBurst(handle: string, microseconds: number): void {
    const file = this.layout.version === 1 ? 'cpu.cfs_burst_us' : 'cpu.max.burst';
    // Kernels before 5.14 have no such file.
    if (this.#quota !== undefined)
      writeKernelFile(`${this.#quota}${this.pathOf(handle)}/${file}`, String(microseconds));
  }

  /** Gives a running sandbox more memory; still no swap. */
  raiseMemoryLimit(handle: string, bytes: number): void {
    const files = this.layout.version === 1 ? ['memsw.limit_in_bytes', 'limit_in_bytes'] : ['max'];
    for (const file of files)
      writeKernelFile(`${this.#memory}${this.pathOf(handle)}/memory.${file}`, String(bytes));
  }

  /**
   * Bounds the socket memory of a sandbox, for sockets made from now on. On version 2 it is part of the memory limit. Version 1 does not
   * count it unless it has a limit of its own, and one sandbox could fill the buffers of the whole host.
   */
  limitSockets(handle: string, memoryBytes: number): void {
    if (this.layout.version === 2) return;
    const bytes = Math.max(MIN_SOCKET_BYTES, Math.floor(memoryBytes / SOCKET_SHARE));
    writeKernelFile(`${this.#memory}${this.pathOf(handle)}/memory.kmem.tcp.limit_in_bytes`, String(bytes));
  }

  #processesIn(tree: string, handle: string): readonly number[] {
    return processIds(readKernelFile(`${tree}${this.pathOf(handle)}/cgroup.procs`) ?? '');
  }
}

/** Enough for a few connections at full speed. */
const MIN_SOCKET_BYTES = 16 * 1024 * 1024;
/** The kernel's default for all sockets is about this share of a machine's memory. */
const SOCKET_SHARE = 8;

async function removeTree(path: string): Promise<void> {
  await untilDone('a cgroup', async () => {
    try {
      await rmdir(path);
      return true;
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return true;
      // Busy: it has children, or its last process is still exiting.
      if (!isErrno(error, 'EBUSY')) throw error;
    }
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) if (entry.isDirectory()) await removeTree(`${path}/${entry.name}`);
    return false;
  });
}

/**
 * Makes the parent of our cgroups in version 1's cpuset tree, with all CPUs and memory nodes of the tree. A new cgroup there has no CPUs,
 * so when two runtimes start the first two sandboxes of a host at the same time, one could find a parent that the other has made but not
 * yet filled, and fail.
 */
function fillCpusetParent(tree: string, parent: string): void {
  try {
    mkdirSync(parent, { recursive: true });
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const isEmpty = (readKernelFile(`${parent}/${file}`) ?? '').trim() === '';
      if (isEmpty) writeFileSync(`${parent}/${file}`, readKernelFile(`${tree}/${file}`) ?? '');
    }
  } catch (error) {
    // The tree cannot be written to: the runtime reports that.
    if (!isErrno(error, 'EROFS', 'EACCES')) throw error;
  }
}
