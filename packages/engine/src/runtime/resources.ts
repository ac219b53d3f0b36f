import { pinnedCpus } from './cpu-set.ts';
import type { HostAbilities } from './host-abilities.ts';
import type { OciResources } from './oci-config.ts';
import type { RuntimeSpec } from './runtime.ts';

/** The limits that every runtime sets through cgroups, as far as this host has the controllers. */
export function guestResources(
  spec: RuntimeSpec,
  host: HostAbilities,
  placed: { readonly firstCpu: number | null; readonly memoryMib: number },
): OciResources {
  const memoryBytes = placed.memoryMib * 1024 * 1024;
  const cpus = placed.firstCpu === null ? null : pinnedCpus(host.cpus, spec.vcpus, placed.firstCpu);
  return {
    // Runtimes allow null, zero, full, random, urandom, tty and terminals in any case.
    devices: [{ allow: false, access: 'rwm' }],
    cpu: {
      ...(host.limitsCpu ? cpuShare(spec.vcpus) : {}),
      ...(cpus === null ? {} : { cpus }),
    },
    memory: {
      ...(host.limitsMemory ? { limit: memoryBytes } : {}),
      // The limit covers memory and swap together, so there is no swap.
      ...(host.limitsMemory && host.limitsSwap ? { swap: memoryBytes } : {}),
    },
  };
}

/** The CPU quota, and the weight when sandboxes compete. */
function cpuShare(vcpus: number): OciResources['cpu'] {
  const shares = Math.min(MAX_SHARES, vcpus * SHARES_PER_VCPU);
  return { shares, quota: vcpus * CPU_PERIOD_US, period: CPU_PERIOD_US };
}

export const CPU_PERIOD_US = 100_000;
/** CPU weight among sandboxes, in shares of cgroup version 1; the kernel accepts no more than `MAX_SHARES`. */
const SHARES_PER_VCPU = 4096;
const MAX_SHARES = 262_144;
