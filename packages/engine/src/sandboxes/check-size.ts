import type { SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS } from '@svc/contract/spec';

/** The largest size of one sandbox: the whole host. */
export interface HostSize {
  readonly vcpus: number;
  readonly memoryMib: number;
  readonly diskMib: number;
}

/**
 * Refuses more than the host has, which would be shown and charged but never be available. A sandbox that asks for nothing fits every host.
 * @throws PlatformError `invalid_sandbox_config` naming the field and its maximum
 */
export function checkSize({ resources }: SandboxSpec, host: HostSize): void {
  requireAtMost('vcpus', resources?.vcpus, Math.max(host.vcpus, DEFAULT_VCPUS));
  requireAtMost('memory_mib', resources?.memory_mib, Math.max(host.memoryMib, DEFAULT_MEMORY_MIB));
  requireAtMost('disk_size_mib', resources?.disk_size_mib, Math.max(host.diskMib, DEFAULT_DISK_MIB));
}

function requireAtMost(name: string, wanted: number | null | undefined, maximum: number): void {
  if ((wanted ?? 0) <= maximum) return;
  const field = `resources.${name}`;
  const reason = `must be at most ${maximum}: this host has no more`;
  throw new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, {
    details: { field, reason, maximum },
  });
}
