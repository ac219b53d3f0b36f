import { isDeepStrictEqual } from 'node:util';
import { InvalidArgumentError } from 'commander';
import type { NetworkChange } from '@svc/sdk';
import { collectNetRules, type NetRule } from './net-rule.ts';

type Policy = NonNullable<NetworkChange['policy']>;

/** The profiles, in the order in which they are composed. */
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

/** A policy of the given rules, then those of the profile or of the default profile. Undefined when neither is given. */
export function toPolicy(
  profile: Policy | undefined,
  rules: readonly NetRule[] | undefined,
): Policy | undefined {
  if (profile === undefined && rules === undefined) return undefined;
  const base = profile ?? parseNetProfile('public');
  return { ...base, rules: [...(rules ?? []), ...(base.rules ?? [])] };
}

/** The profile that a policy ends with, without the rules before it. A policy without a profile keeps only its defaults. */
export function profileOf(policy: Policy): Policy {
  const { default_egress = 'deny', default_ingress = 'deny', rules = [] } = policy;
  const words = rules.map(wordsOf);
  const ending = PROFILES.map(parseNetProfile).find((profile) => {
    const own = (profile.rules ?? []).map(wordsOf);
    return (
      profile.default_egress === default_egress &&
      profile.default_ingress === default_ingress &&
      own.length > 0 &&
      isDeepStrictEqual(words.slice(-own.length), own)
    );
  });
  return ending ?? { default_egress, default_ingress, rules: [] };
}

/** At most one combination of profiles matches the end of a policy, because each begins with the rule about names. */
const PROFILES = [
  'public',
  'private',
  'host',
  'public,private',
  'public,host',
  'private,host',
  'public,private,host',
];

/** A rule with its defaults, as the server shows it. */
function wordsOf({ protocols = [], ports = [], ...rule }: NetRule) {
  return { ...rule, protocols, ports };
}
