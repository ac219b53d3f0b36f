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
 * The configuration of a sandbox with gVisor's own kernel (runsc). That kernel provides /proc and /sys, so no files of the host need
 * masking. It enforces resource limits itself, so the host's limits do not bound them.
 */
export function gvisorConfig(spec: RuntimeSpec, host: HostAbilities): GuestConfig {
  const rlimits = [...spec.rlimits.filter(({ resource }) => resource !== 'nproc'), processLimit(spec)];
  return ociConfig(spec, {
    mounts: [...systemMounts(spec), ...cpuFiles(spec), ...mountInsideTmp(spec), ...requestedMounts(spec)],
    initEnvironment: [`SVC_CPUS=${spec.vcpus}`, 'SVC_SPAWN=shared'],
    namespaces: [
      // A new user namespace with the ids of the slot: runsc cannot join an existing one.
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
 * gVisor's kernel and its file server run in the same cgroup as the guest; this is added to the limit for them. It is added once the
 * sandbox runs: at start runsc takes the limit as the memory of the machine that it shows inside.
 */
export const GVISOR_KERNEL_MIB = 64;

/** The minimum memory of gVisor's kernel. A smaller sandbox is shown this much. */
const BOOT_MIB = 32;

/**
 * gVisor's kernel has at least two CPUs: with one, each of its threads that waits for the host blocks all others. Programs that count CPUs
 * get the requested number: from these files, or from the affinity that svc-init sets for itself.
 */
function cpuFiles(spec: RuntimeSpec): OciMount[] {
  return [
    boundReadonly(spec.procFiles.cpuinfo, '/proc/cpuinfo'),
    boundReadonly(spec.procFiles.cpuOnline, '/sys/devices/system/cpu/online'),
  ];
}

/**
 * runsc covers an empty /tmp with a tmpfs: files there would count as memory and be lost on a restart. A mount inside /tmp prevents that,
 * so that it stays on the disk of the sandbox.
 */
function mountInsideTmp(spec: RuntimeSpec): OciMount[] {
  if (spec.mounts.some(({ destination }) => normalize(`${destination}/`) === '/tmp/')) return [];
  const options = ['ro', 'nosuid', 'nodev', 'noexec', 'mode=0555', 'size=4k'];
  return [{ destination: '/tmp/.svc', type: 'tmpfs', source: 'tmpfs', options }];
}

/**
 * A limit of host threads that guests reach only on purpose, with many users at their limits: then the host is protected and the sandbox
 * may hang.
 */
function hostTaskLimit(maxProcesses: number): number {
  return 1024 + 16 * maxProcesses;
}

/** A cgroup limit would count some seven host threads per guest process and hang the guest; gVisor's kernel counts its own processes, per user. */
function processLimit(spec: RuntimeSpec): Rlimit {
  const asked = spec.rlimits.find(({ resource }) => resource === 'nproc');
  // One more than requested, because PID 1 is ours.
  const hard = Math.min(asked?.hard ?? Infinity, spec.maxProcesses + 1);
  return { resource: 'nproc', soft: Math.min(asked?.soft ?? Infinity, hard), hard };
}
