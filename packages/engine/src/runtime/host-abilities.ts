import { existsSync, readFileSync } from 'node:fs';
import { treeOf } from '../cgroup/cgroup-layout.ts';
import type { CgroupLayout } from '../cgroup/cgroup-layout.ts';
import { allowedCpus } from './cpu-set.ts';
import { canRaiseLimits, readRlimitCeilings } from './rlimits.ts';
import type { RlimitCeilings } from './rlimits.ts';

/** The limits that this host supports. Requesting others makes a start fail. */
export interface HostAbilities {
  readonly cgroupVersion: 1 | 2;
  readonly limitsCpu: boolean;
  readonly limitsMemory: boolean;
  /** False where the kernel does not account for swap. */
  readonly limitsSwap: boolean;
  readonly limitsProcesses: boolean;
  /** CPUs that a sandbox can be pinned to; empty where pinning is impossible. */
  readonly cpus: readonly number[];
  readonly rlimits: RlimitCeilings;
  /** Whether a hard limit can be raised: root of a container often cannot. */
  readonly raisesLimits: boolean;
}

export function readHostAbilities(layout: CgroupLayout): HostAbilities {
  const status = readFileSync('/proc/self/status', 'latin1');
  const memory = treeOf(layout, 'memory')?.mountpoint;
  const has = (controller: string) => treeOf(layout, controller) !== undefined;
  return {
    cgroupVersion: layout.version,
    limitsCpu: has('cpu'),
    limitsMemory: memory !== undefined,
    // On version 2 the file is absent in the root cgroup, and runtimes handle a kernel without swap themselves.
    limitsSwap: layout.version === 2 || existsSync(`${memory}/memory.memsw.limit_in_bytes`),
    limitsProcesses: has('pids'),
    cpus: has('cpuset') ? allowedCpus(status) : [],
    rlimits: readRlimitCeilings(),
    raisesLimits: canRaiseLimits(status),
  };
}
