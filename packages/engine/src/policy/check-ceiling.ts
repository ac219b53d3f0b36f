import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { coversRange, wordsOf, type Ceiling } from './ceiling.ts';
import { isAbout } from './decide.ts';
import { isAboutResolver } from './nameservers.ts';
import { resolvePolicy, type Destination } from './resolve-policy.ts';

/**
 * Refuses a policy that allows destinations beyond the operator's ceiling. The default policy is not checked, because the caller did not
 * choose it; the ceiling limits it like any other. @throws PlatformError `network_ceiling_exceeded` that names the rule
 */
export function checkCeiling(network: Network | undefined, ceilings: readonly Ceiling[]): void {
  if ((network?.policy ?? null) === null || ceilings.length === 0) return;
  const { rules, defaultEgress } = resolvePolicy(network);
  for (const ceiling of ceilings) {
    const index = rules.findIndex(
      (rule) =>
        rule.action === 'allow' &&
        isAbout(rule, 'egress') &&
        !isAboutResolver(rule) &&
        !covers(ceiling, rule.destination),
    );
    if (index !== -1) throw beyond(`network.policy.rules[${index}]`, 'allows', ceiling);
    if (defaultEgress === 'allow') throw beyond('network.policy.default_egress', 'allow is', ceiling);
  }
}

/** Rules about names are accepted: the ceiling limits the addresses that they resolve to. */
function covers(ceiling: Ceiling, destination: Destination): boolean {
  if (destination.kind === 'any') return false;
  if (destination.kind === 'group') return ceiling.groups.includes(destination.group);
  return destination.kind === 'cidr' ? coversRange(ceiling, destination.range) : true;
}

function beyond(field: string, what: string, ceiling: Ceiling): PlatformError {
  const words = wordsOf(ceiling);
  const most = words.length === 0 ? 'nothing' : words.join(', ');
  const reason = `${what} more than the operator of this server lets sandboxes reach, which is ${most} (--network-ceiling)`;
  return new PlatformError('network_ceiling_exceeded', `${field}: ${reason}; leave it out`, {
    details: { field, reason, ceiling: words },
  });
}
