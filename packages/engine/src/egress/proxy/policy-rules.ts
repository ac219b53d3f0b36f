import { parseAddress, type Address } from '../../policy/address.ts';
import { decide, isByName } from '../../policy/decide.ts';
import type { HostNetworks } from '../../policy/groups.ts';
import { normalizeName } from '../../policy/names.ts';
import type { ResolvedPolicy } from '../../policy/resolve-policy.ts';
import type { Rules, Verdict } from './sandbox-egress.ts';

/** Resolved names of sandboxes, which are identified by their address. */
export interface PolicySource {
  readonly hostNetworks: HostNetworks;
  policyOf(client: string): ResolvedPolicy;
  /** Names that resolved to the address for this sandbox and have not expired. */
  namesOf(client: string, address: Address): readonly string[];
}

const DENIED: Verdict = { action: 'deny', rule: null, isByName: false };

/** The current rules of a sandbox for its connections. */
export function rulesOf(source: PolicySource, client: string): Rules {
  return {
    get isStrict() {
      return source.policyOf(client).strict;
    },
    decide: ({ address, port }, said) => {
      const parsed = parseAddress(address);
      if (parsed === null) return DENIED;
      const policy = source.policyOf(client);
      const flow = {
        direction: 'egress',
        protocol: 'tcp',
        address: parsed,
        port,
        names: source.namesOf(client, parsed),
      } as const;
      const { action, rule } = decide(
        policy,
        said === undefined ? flow : { ...flow, sni: said },
        source.hostNetworks,
      );
      const decider = rule === null ? undefined : policy.rules[rule];
      return { action, rule, isByName: decider !== undefined && isByName(decider.destination) };
    },
    isPinned: (name, address) => {
      const parsed = parseAddress(address);
      return (
        parsed !== null && source.namesOf(client, parsed).map(normalizeName).includes(normalizeName(name))
      );
    },
  };
}
