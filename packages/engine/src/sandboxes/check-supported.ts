import { isAbsolute } from 'node:path';
import type { Mount, Rlimit, SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { Isolation } from '@svc/contract/orchestrator';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { readRequestedInterface } from '../network/requested-interface.ts';
import { checkInterception } from './interception.ts';

const NO_IPV6 = 'sandboxes of this host have no IPv6 (--ipv6-pool); leave the rule out';

/** Refuses what this host could not enforce, instead of ignoring it. */
export function checkSupported(spec: SandboxSpec, host: { readonly hasIpv6: boolean }): void {
  checkNetwork(spec, host);
  checkInterception(spec);
  checkMounts(spec);
  if (spec.init !== undefined && spec.init !== null) {
    throw unsupported('init', 'an init system of the image needs a kernel of its own (isolation microvm)');
  }
}

function checkNetwork({ network }: SandboxSpec, { hasIpv6 }: { readonly hasIpv6: boolean }): void {
  const policy = resolvePolicy(network);
  for (const [index, { action, destination, protocols }] of policy.rules.entries()) {
    if (action === 'deny') continue;
    const field = `network.policy.rules[${index}]`;
    if (!hasIpv6 && destination.kind === 'cidr' && destination.range.family === 6)
      throw unsupported(`${field}.destination.cidr`, NO_IPV6);
    if (destination.kind === 'group' && destination.group === 'multicast')
      throw unsupported(
        `${field}.destination.group`,
        'multicast does not leave a sandbox; leave the rule out',
      );
    if (!hasIpv6 && protocols.length > 0 && protocols.every((protocol) => protocol === 'icmpv6'))
      throw unsupported(`${field}.protocols`, NO_IPV6);
  }
  readRequestedInterface(network);
}

/** A volume stores the ids and modes of guests in its own files, where no user of the host has any of their own to keep apart. */
function checkMounts({ mounts = [] }: SandboxSpec): void {
  for (const [index, mount] of mounts.entries()) {
    if (!isInVolume(mount)) continue;
    const { stat_virtualization: stat, host_permissions: permissions } = mount;
    const says = 'goes with folders of the host; a volume stores owners and modes as the sandbox sets them';
    const remedy = 'leave it out, or bind a folder of the host by its absolute path';
    if (stat === 'off') throw unsupported(`mounts[${index}].stat_virtualization`, `off ${says}; ${remedy}`);
    if (permissions === 'mirror')
      throw unsupported(`mounts[${index}].host_permissions`, `mirror ${says}; ${remedy}`);
  }
}

function isInVolume(mount: Mount): mount is Extract<Mount, { type: 'bind' | 'named' }> {
  return mount.type === 'named' || (mount.type === 'bind' && !isAbsolute(mount.host));
}

/**
 * Limits that a kernel takes and does not keep. gVisor's keeps CPU time for a process that set the limit itself, not for its children,
 * and `data` for the heap of brk alone, while memory comes from mmap too.
 */
export const NOT_KEPT: Readonly<Record<Isolation, readonly Rlimit['resource'][]>> = {
  container: [],
  gvisor: ['cpu', 'data', 'msgqueue', 'sigpending'],
  microvm: [],
};

/** Refuses limits that a class of isolation does not keep. */
export function checkLimitsKept(spec: SandboxSpec, isolation: Isolation): void {
  for (const [index, { resource }] of (spec.rlimits ?? []).entries()) {
    if (!NOT_KEPT[isolation].includes(resource)) continue;
    throw unsupported(
      `rlimits[${index}].resource`,
      `${resource} is not kept by isolation ${isolation}; leave it out, or choose container`,
    );
  }
}

function unsupported(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
