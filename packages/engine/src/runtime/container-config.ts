import { boundedTerminals, boundReadonly, requestedMounts, systemMounts } from './guest-mounts.ts';
import { MASKED_PATHS, READONLY_PATHS } from './guest-paths.ts';
import type { HostAbilities } from './host-abilities.ts';
import { ociConfig } from './oci-config.ts';
import type { GuestConfig, OciMount } from './oci-config.ts';
import { guestResources } from './resources.ts';
import { grantableRlimits } from './rlimits.ts';
import type { RuntimeSpec } from './runtime.ts';

/** The configuration of a sandbox that shares the host's kernel (runc, crun). */
export function containerConfig(
  spec: RuntimeSpec,
  host: HostAbilities,
  allocateCpus: () => number,
): GuestConfig {
  const rlimits = grantableRlimits(spec.rlimits, host.rlimits);
  return ociConfig(spec, {
    mounts: [
      ...systemMounts(spec, boundedTerminals()),
      ...truthfulFiles(spec),
      ...cgroupMount(host),
      ...requestedMounts(spec),
    ],
    namespaces: [
      { type: 'user', path: spec.slot.userNamespace },
      { type: 'network', path: spec.slot.networkNamespace },
      { type: 'pid' },
      { type: 'mount' },
      { type: 'ipc' },
      { type: 'uts' },
      { type: 'cgroup' },
    ],
    resources: {
      ...guestResources(spec, host, { firstCpu: allocateCpus(), memoryMib: spec.memoryMib }),
      ...(host.limitsProcesses ? { pids: { limit: taskLimit(spec.maxProcesses) } } : {}),
    },
    rlimits,
    initRlimits: host.raisesLimits ? rlimits.filter(({ resource }) => resource === 'nofile') : [],
    maskedPaths: MASKED_PATHS,
    readonlyPaths: READONLY_PATHS,
  });
}

/** The runtime's threads count until it executes svc-init; with a lower limit it cannot start. */
const MIN_TASKS = 16;

/** One more than requested, because PID 1 is ours. */
function taskLimit(maxProcesses: number): number {
  return Math.max(MIN_TASKS, maxProcesses + 1);
}

/** Replaces files in which the host's kernel shows the whole machine; programs size their pools and heaps by them. */
function truthfulFiles(spec: RuntimeSpec): OciMount[] {
  return [
    boundReadonly(spec.procFiles.meminfo, '/proc/meminfo'),
    boundReadonly(spec.procFiles.cpuinfo, '/proc/cpuinfo'),
    boundReadonly(spec.procFiles.cpuOnline, '/sys/devices/system/cpu/online'),
  ];
}

/** Many programs read memory.max. On cgroup version 2 that is one read-only mount of the sandbox's own cgroup; version 1 would need nine. */
function cgroupMount(host: HostAbilities): OciMount[] {
  if (host.cgroupVersion === 1) return [];
  const options = ['ro', 'nosuid', 'noexec', 'nodev', 'relatime'];
  return [{ destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options }];
}
