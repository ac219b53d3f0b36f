import type { SandboxSpec } from '@svc/contract';
import { DEFAULT_MEMORY_MIB, DEFAULT_VCPUS } from '@svc/contract/spec';

/** How much of the host a sandbox may use, whether its spec says so or not. */
export function limitsOf(spec: SandboxSpec): { vcpus: number; memoryMib: number } {
  return {
    vcpus: spec.resources?.vcpus ?? DEFAULT_VCPUS,
    memoryMib: spec.resources?.memory_mib ?? DEFAULT_MEMORY_MIB,
  };
}
