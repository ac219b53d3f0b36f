import type { Rlimit } from '@svc/contract';
import { boundedTerminals, boundReadonly, requestedMounts, systemMounts } from './guest-mounts.ts';
import { MASKED_PATHS, READONLY_PATHS } from './guest-paths.ts';
import type { HostAbilities } from './host-abilities.ts';
import { ociConfig } from './oci-config.ts';
import type { GuestConfig, OciMount } from './oci-config.ts';
import { guestResources } from './resources.ts';
import { grantableRlimits } from './rlimits.ts';
import type { RuntimeSpec } from './runtime.ts';

/** How a sandbox that shares the host's kernel (runc, crun) is set up. */
export function containerConfig(
  spec: RuntimeSpec,
  host: HostAbilities,
  takePlace: () => number,
): GuestConfig {
  const asked = spec.rlimits.filter(({ resource }) => !isPriority(resource));
  const rlimits = [...grantableRlimits(asked, host.rlimits), ...NO_PRIORITIES];
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
      ...guestResources(spec, host, { firstCpu: takePlace(), memoryMib: spec.memoryMib }),
      ...(host.limitsProcesses ? { pids: { limit: taskLimit(spec.maxProcesses) } } : {}),
    },
    rlimits,
    maskedPaths: MASKED_PATHS,
    readonlyPaths: READONLY_PATHS,
  });
}

/** SAFETY: whatever the engine was started with: a thread of a higher class would leave the sandbox's share of the processor. */
const NO_PRIORITIES: readonly Rlimit[] = [
  { resource: 'nice', soft: 0, hard: 0 },
  { resource: 'rtprio', soft: 0, hard: 0 },
];

function isPriority(resource: Rlimit['resource']): boolean {
  return NO_PRIORITIES.some((limit) => limit.resource === resource);
}

/** The runtime's own threads count until it becomes svc-init; below this it cannot start. */
const MIN_TASKS = 16;

/** PID 1 is ours and not among the processes that were asked for. */
function taskLimit(maxProcesses: number): number {
  return Math.max(MIN_TASKS, maxProcesses + 1);
}

/** The host's kernel shows the whole machine in these files; programs size their pools and heaps by them. */
function truthfulFiles(spec: RuntimeSpec): OciMount[] {
  return [
    boundReadonly(spec.procFiles.meminfo, '/proc/meminfo'),
    boundReadonly(spec.procFiles.cpuinfo, '/proc/cpuinfo'),
    boundReadonly(spec.procFiles.cpuOnline, '/sys/devices/system/cpu/online'),
  ];
}

/** Many programs read memory.max. On version 2 that is one read-only mount of the sandbox's own cgroup; version 1 would take nine. */
function cgroupMount(host: HostAbilities): OciMount[] {
  if (host.cgroupVersion === 1) return [];
  const options = ['ro', 'nosuid', 'noexec', 'nodev', 'relatime'];
  return [{ destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options }];
}
