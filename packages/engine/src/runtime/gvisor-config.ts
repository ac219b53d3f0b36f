import { normalize } from 'node:path/posix';
import type { Rlimit } from '@svc/contract';
import { boundReadonly, requestedMounts, systemMounts } from './guest-mounts.ts';
import type { HostAbilities } from './host-abilities.ts';
import { ociConfig } from './oci-config.ts';
import type { GuestConfig, OciMount } from './oci-config.ts';
import { guestResources } from './resources.ts';
import { rlimitsOfInit } from './rlimits.ts';
import type { RuntimeSpec } from './runtime.ts';

/**
 * How a sandbox with gVisor's own kernel (runsc) is set up. /proc and /sys are that kernel's: there is nothing of the host to mask.
 * Resource limits are kept by it, so the host's own limits do not bound them.
 */
export function gvisorConfig(spec: RuntimeSpec, host: HostAbilities): GuestConfig {
  const rlimits = [...spec.rlimits.filter(({ resource }) => resource !== 'nproc'), processLimit(spec)];
  return ociConfig(spec, {
    mounts: [...systemMounts(spec), ...cpuFiles(spec), ...tmpKeeper(spec), ...requestedMounts(spec)],
    initEnvironment: [`SVC_CPUS=${spec.vcpus}`, 'SVC_SPAWN=shared'],
    namespaces: [
      // A new one with the ids of the slot: runsc cannot join a user namespace.
      { type: 'user' },
      { type: 'network', path: spec.slot.networkNamespace },
      { type: 'pid' },
      { type: 'mount' },
      { type: 'ipc' },
      { type: 'uts' },
      { type: 'cgroup' },
    ],
    resources: {
      ...guestResources(spec, host, { firstCpu: null, memoryMib: Math.max(spec.memoryMib, BOOT_MIB) }),
      ...(host.limitsProcesses ? { pids: { limit: hostTaskLimit(spec.maxProcesses) } } : {}),
    },
    rlimits,
    initRlimits: rlimitsOfInit(rlimits),
    maskedPaths: [],
    readonlyPaths: [],
  });
}

/**
 * gVisor's kernel and its file server live in the same cgroup as what they serve; this much on top is theirs. It is added once the
 * sandbox runs: at the start runsc takes the limit for the memory of the machine that it shows inside.
 */
export const GVISOR_KERNEL_MIB = 64;

/** The least that gVisor's kernel starts with. A smaller sandbox is shown this much. */
const BOOT_MIB = 32;

/**
 * gVisor's kernel has two CPUs at the least: with one, each of its threads that waits for the host holds up all the others. What counts
 * CPUs inside is told as many as were asked for: by these files, or by the affinity that svc-init gives itself.
 */
function cpuFiles(spec: RuntimeSpec): OciMount[] {
  return [
    boundReadonly(spec.procFiles.cpuinfo, '/proc/cpuinfo'),
    boundReadonly(spec.procFiles.cpuOnline, '/sys/devices/system/cpu/online'),
  ];
}

/**
 * runsc covers an empty /tmp with a tmpfs: files there would count as memory and be lost on a restart. A mount inside keeps /tmp from
 * being empty, so that it stays on the disk of the sandbox.
 */
function tmpKeeper(spec: RuntimeSpec): OciMount[] {
  if (spec.mounts.some(({ destination }) => normalize(`${destination}/`) === '/tmp/')) return [];
  const options = ['ro', 'nosuid', 'nodev', 'noexec', 'mode=0555', 'size=4k'];
  return [{ destination: '/tmp/.svc', type: 'tmpfs', source: 'tmpfs', options }];
}

/**
 * Guests stay below this many host threads unless they work at it, with many users at their limit each: then the host comes first and
 * the sandbox may hang.
 */
function hostTaskLimit(maxProcesses: number): number {
  return 1024 + 16 * maxProcesses;
}

/**
 * A cgroup limit would count some seven host threads per guest process and hang the guest; gVisor's kernel counts its own processes,
 * per user.
 */
function processLimit(spec: RuntimeSpec): Rlimit {
  const asked = spec.rlimits.find(({ resource }) => resource === 'nproc');
  // PID 1 is ours and not among the processes that were asked for.
  const hard = Math.min(asked?.hard ?? Infinity, spec.maxProcesses + 1);
  return { resource: 'nproc', soft: Math.min(asked?.soft ?? Infinity, hard), hard };
}
