import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { Action, Direction, Group, Protocol } from '@svc/contract/orchestrator';
import { DEFAULT_DNS, DEFAULT_MAX_CONNECTIONS, DEFAULT_POLICY, DENY_ALL } from '@svc/contract/spec';
import { parseAddress, parseCidr, type Cidr } from './address.ts';
import type { Ceiling } from './ceiling.ts';
import { isHostName, normalizeName } from './names.ts';

export type Destination =
  | { readonly kind: 'any' }
  | { readonly kind: 'cidr'; readonly range: Cidr }
  | { readonly kind: 'group'; readonly group: Group }
  | { readonly kind: 'domain' | 'suffix'; readonly name: string };

export interface Rule {
  readonly action: Action;
  readonly direction: Direction | 'any';
  readonly destination: Destination;
  /** Empty: every protocol. */
  readonly protocols: readonly Protocol[];
  /** Empty: every port. Inclusive at both ends. */
  readonly ports: readonly { readonly start: number; readonly end: number }[];
}

/** A policy with all defaults filled in and all values parsed. */
export interface ResolvedPolicy {
  readonly defaultEgress: Action;
  readonly defaultIngress: Action;
  readonly rules: readonly Rule[];
  /** Rules that allow a name apply only to intercepted connections, whose requests are for that name. */
  readonly strict: boolean;
  /** The operator's upper bounds: destinations beyond one of them are denied under every rule. */
  readonly ceilings: readonly Ceiling[];
  readonly maxConnections: number;
  /** Null: only limited by the number of connections. */
  readonly maxUdpConnections: number | null;
  readonly dns: {
    /** Empty: those of this host. */
    readonly nameservers: readonly { readonly address: string; readonly port: number }[];
    readonly queryTimeoutMs: number;
    readonly rebindProtection: boolean;
  };
}

const DNS_PORT = 53;

/** Resolves the network part of a spec. @throws PlatformError `invalid_sandbox_config` that names the field. */
export function resolvePolicy(
  network: Network | undefined,
  ceilings: readonly Ceiling[] = [],
): ResolvedPolicy {
  const policy = network?.enabled === false ? DENY_ALL : (network?.policy ?? DEFAULT_POLICY);
  return {
    defaultEgress: policy.default_egress ?? 'deny',
    defaultIngress: policy.default_ingress ?? 'deny',
    rules: (policy.rules ?? []).map((rule, index) => ({
      action: rule.action,
      direction: rule.direction,
      destination: resolveDestination(rule.destination, `network.policy.rules[${index}]`),
      protocols: rule.protocols ?? [],
      ports: (rule.ports ?? []).map((range, at) => {
        if (range.start <= range.end) return range;
        throw invalid(`network.policy.rules[${index}].ports[${at}]`, 'start must not be above end');
      }),
    })),
    strict: network?.strict ?? false,
    ceilings,
    maxConnections: network?.max_connections ?? DEFAULT_MAX_CONNECTIONS,
    maxUdpConnections: network?.max_udp_connections ?? null,
    dns: {
      nameservers: (network?.dns?.nameservers ?? []).map(resolveNameserver),
      queryTimeoutMs: network?.dns?.query_timeout_ms ?? DEFAULT_DNS.query_timeout_ms,
      rebindProtection: network?.dns?.rebind_protection ?? DEFAULT_DNS.rebind_protection,
    },
  };
}

type GivenDestination = NonNullable<
  NonNullable<NonNullable<Network['policy']>['rules']>
>[number]['destination'];

function resolveDestination(given: GivenDestination, field: string): Destination {
  if (given === 'any') return { kind: 'any' };
  if ('group' in given) return { kind: 'group', group: given.group };
  if ('cidr' in given) {
    const range = parseCidr(given.cidr);
    if (range !== null) return { kind: 'cidr', range };
    throw invalid(
      `${field}.destination.cidr`,
      'must be an address or a range such as 10.0.0.0/8 (bits behind the prefix 0)',
    );
  }
  const [kind, key, text] =
    'domain' in given
      ? (['domain', 'domain', given.domain] as const)
      : (['suffix', 'domain_suffix', given.domain_suffix] as const);
  const name = normalizeName(text);
  if (!isHostName(name))
    throw invalid(
      `${field}.destination.${key}`,
      'must be a name such as example.com, without * and not an address',
    );
  return { kind, name };
}

/** `address` or `address:port`, IPv6 in brackets when there is a port. */
function resolveNameserver(text: string, index: number): { address: string; port: number } {
  const bracketed = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([^:]+):(\d{1,5})$/.exec(text);
  const [address = '', port] = bracketed === null ? [text] : bracketed.slice(1);
  const number = port === undefined ? DNS_PORT : Number(port);
  if (parseAddress(address) !== null && number >= 1 && number <= 65_535) return { address, port: number };
  throw invalid(
    `network.dns.nameservers[${index}]`,
    'must be an address such as 192.0.2.53, or 192.0.2.53:5353',
  );
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
