import type { Rlimit, SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { Isolation } from '../runtime/runtime.ts';

/** Refuses what this host could not enforce, instead of ignoring it. */
export function checkSupported(spec: SandboxSpec): void {
  const { network } = spec;
  if ((network?.policy?.rules ?? []).length > 0 && !isDefaultPolicy(network?.policy)) {
    throw unsupported(
      'network.policy.rules',
      'only the default policy (DNS and public addresses) and deny-all can be enforced',
    );
  }
  if (network?.policy?.default_egress === 'allow') {
    throw unsupported(
      'network.policy.default_egress',
      'private and host addresses cannot be opened; use deny',
    );
  }
  if ((network?.secrets?.entries ?? []).length > 0) {
    throw unsupported('network.secrets', 'secrets need the intercepting proxy, which this host does not run');
  }
  if ((network?.dns ?? null) !== null) {
    throw unsupported('network.dns', 'all sandboxes of this host ask the same resolvers; leave it out');
  }
  if (network?.strict === true) {
    throw unsupported('network.strict', 'there are no rules by name that it could be about; leave it out');
  }
  if ((network?.max_connections ?? null) !== null) {
    throw unsupported('network.max_connections', 'connections are not counted on this host; leave it out');
  }
  if (spec.init !== undefined && spec.init !== null) {
    throw unsupported('init', 'an init system of the image needs a kernel of its own (isolation microvm)');
  }
}

/** Limits that a kernel takes and does not keep. gVisor's keeps CPU time for a process that set the limit itself, not for its children. */
const NOT_KEPT: Readonly<Record<Isolation, readonly Rlimit['resource'][]>> = {
  container: [],
  gvisor: ['cpu', 'sigpending'],
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

type Policy = NonNullable<NonNullable<SandboxSpec['network']>['policy']>;

/** What clients send when a network option was touched but nothing changed: DNS to the gateway, and public addresses. */
function isDefaultPolicy(policy: Policy | null | undefined): boolean {
  const rules = policy?.rules ?? [];
  const [dns, open, ...more] = rules;
  if (more.length > 0 || policy?.default_egress === 'allow') return false;
  return (
    isGroup(dns, 'host') &&
    (dns?.ports ?? []).every((port) => port.start === 53 && port.end === 53) &&
    isGroup(open, 'public')
  );
}

function isGroup(rule: NonNullable<Policy['rules']>[number] | undefined, group: string): boolean {
  const destination = rule?.destination;
  return (
    rule?.action === 'allow' &&
    rule.direction === 'egress' &&
    typeof destination === 'object' &&
    'group' in destination &&
    destination.group === group
  );
}
