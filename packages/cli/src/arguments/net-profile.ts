import { InvalidArgumentError } from 'commander';
import type { NetworkChange } from '@svc/sdk';
import { collectNetRules, type NetRule } from './net-rule.ts';

type Policy = NonNullable<NetworkChange['policy']>;

/** In the order in which they are composed. */
const REACHES = ['public', 'private', 'host'] as const;

/** `public`, `private` and `host` in any combination, or `none`, or `all`. */
export function parseNetProfile(text: string): Policy {
  if (text === 'none') return { default_egress: 'deny', default_ingress: 'deny', rules: [] };
  if (text === 'all') return { default_egress: 'allow', default_ingress: 'allow', rules: [] };
  const words = text.split(',');
  if (words.length === 0 || !words.every((word) => REACHES.some((reach) => reach === word)))
    throw new InvalidArgumentError('Give public, private and host (several with commas), or none, or all.');
  const reaches = REACHES.filter((reach) => words.includes(reach)).map((reach) => `allow@${reach}`);
  return {
    default_egress: 'deny',
    default_ingress: 'allow',
    rules: [...collectNetRules(['allow@dns', ...reaches].join(','))],
  };
}

/** Rules come before those of the profile, which is the default one where none is given. Undefined when there is neither. */
export function toPolicy(
  profile: Policy | undefined,
  rules: readonly NetRule[] | undefined,
): Policy | undefined {
  if (profile === undefined && rules === undefined) return undefined;
  const base = profile ?? parseNetProfile('public');
  return { ...base, rules: [...(rules ?? []), ...(base.rules ?? [])] };
}
