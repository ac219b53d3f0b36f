import { isIP } from 'node:net';
import type { HarnessV1NetworkPolicy } from '@ai-sdk/harness';
import type { NetworkChange } from '@svc/sdk';

type Policy = NonNullable<NetworkChange['policy']>;
type Rule = NonNullable<Policy['rules']>[number];

/**
 * Null: the policy of sandboxes that have none, which is every public address. Otherwise the first rule that fits decides, so what is
 * denied comes first.
 */
export function toPolicy(policy: HarnessV1NetworkPolicy): Policy | null {
  if (policy.mode === 'deny-all') return { default_egress: 'deny', rules: [] };
  if (policy.mode === 'allow-all')
    return { default_egress: 'deny', rules: [rule('allow', { group: 'public' })] };
  const { allowedHosts = [], allowedCIDRs = [], deniedCIDRs = [] } = policy;
  return {
    default_egress: 'deny',
    rules: [
      ...deniedCIDRs.map((cidr) => rule('deny', { cidr })),
      ...allowedCIDRs.map((cidr) => rule('allow', { cidr })),
      ...allowedHosts.map((host) => rule('allow', destinationOf(host))),
    ],
  };
}

function rule(action: 'allow' | 'deny', destination: Rule['destination']): Rule {
  return { direction: 'egress', action, destination };
}

function destinationOf(host: string): Rule['destination'] {
  const version = isIP(host);
  if (version !== 0) return { cidr: `${host}/${version === 4 ? 32 : 128}` };
  if (host === '*') return { group: 'public' };
  return host.startsWith('*.') ? { domain_suffix: host.slice(2) } : { domain: host };
}
