import type { NetworkPolicy } from '@svc/contract';

/**
 * A second implementation of policies, as naive as possible: texts instead of numbers, one pass, no shared code with the
 * real one.
 */
export interface Place {
  readonly gateway: string;
  readonly own: readonly string[];
  /** The text prefixes of the host's networks, and of the addresses of sandboxes. */
  readonly neighbours: readonly string[];
  readonly sandboxes: string;
  /** The same for IPv6; absent without it. */
  readonly gateway6?: string;
  readonly sandboxes6?: string;
}
interface Flow {
  readonly direction: string;
  readonly address: string;
  readonly port: number;
  readonly protocol: string;
  readonly names: readonly string[];
  readonly sni?: string | undefined;
  readonly strict?: boolean;
}
type Rule = NonNullable<NetworkPolicy['rules']>[number];

export function referenceGroup(address: string, place: Place): string | null {
  if (address.includes(':')) return referenceGroup6(address, place);
  const [a = 0, b = 0] = address.split('.').map(Number);
  if (address === place.gateway) return 'host';
  if (address === '0.0.0.0' || address.startsWith(place.sandboxes)) return null;
  if (place.own.includes(address)) return 'host';
  if (address === '169.254.169.254') return 'metadata';
  if (a === 127) return 'loopback';
  if (a === 10 || (a === 172 && b >= 16 && b <= 31) || (a === 192 && b === 168)) return 'private';
  if ((a === 100 && b >= 64 && b <= 127) || place.neighbours.some((start) => address.startsWith(start)))
    return 'private';
  if (a === 169 && b === 254) return 'link_local';
  if (a >= 224 && a <= 239) return 'multicast';
  return a === 0 || a >= 240 || /^(198\.51\.100\.|168\.63\.129\.16$)/.test(address) ? null : 'public';
}

/** Written out without `::`, in lower case. */
function referenceGroup6(address: string, place: Place): string | null {
  if (address === place.gateway6 || place.own.includes(address)) return 'host';
  if (address.startsWith(place.sandboxes6 ?? 'none')) return null;
  if (address === 'fd00:ec2:0:0:0:0:0:254') return 'metadata';
  if (/^f[cd]/.test(address) || place.neighbours.some((start) => address.startsWith(start))) return 'private';
  return /^[23]/.test(address) && !/^(2001:db8|2001:[01]?..?|3fff):/.test(address) ? 'public' : null;
}

/** An embedded IPv4 address, or one valid on a single link. */
const CLOSED6 = /^(?:[0-9a-f]{1,2}:|2002:|fe[89abcdef]|ff)/;

export function referenceAction(policy: NetworkPolicy, flow: Flow, place: Place): string {
  const out = flow.direction === 'egress';
  const closed =
    flow.address === '0.0.0.0' ||
    (flow.address.includes(':') && CLOSED6.test(flow.address)) ||
    (flow.address.startsWith(place.sandboxes6 ?? 'none') && flow.address !== place.gateway6) ||
    (flow.address.startsWith(place.sandboxes) && flow.address !== place.gateway);
  if (out && closed) return 'deny';
  const rule = (policy.rules ?? []).find(
    (each) =>
      each.direction in { any: 1, [flow.direction]: 1 } && fits(each, flow) && isPeer(each, flow, place),
  );
  return rule?.action ?? (out ? policy.default_egress : policy.default_ingress) ?? 'deny';
}

export function referenceNameAction(policy: NetworkPolicy, name: string, protocol: string): string {
  const rule = (policy.rules ?? []).find((each) => {
    if (each.direction === 'ingress') return false;
    if (isNamed(each)) return saysName(each, name);
    const isHost = each.destination === 'any' || JSON.stringify(each.destination) === '{"group":"host"}';
    return isHost && fits(each, { protocol, port: 53 });
  });
  return rule?.action ?? policy.default_egress ?? 'deny';
}

function fits(
  { protocols = [], ports = [] }: Rule,
  { protocol, port }: Pick<Flow, 'protocol' | 'port'>,
): boolean {
  if (protocols.length > 0 && !(protocols as string[]).includes(protocol)) return false;
  return (
    ports.length === 0 ||
    (!protocol.startsWith('icmp') && ports.some((range) => port >= range.start && port <= range.end))
  );
}

function isNamed({ destination }: Rule): boolean {
  return typeof destination === 'object' && ('domain' in destination || 'domain_suffix' in destination);
}

function saysName({ destination }: Rule, name: string): boolean {
  if (typeof destination !== 'object') return false;
  if ('domain' in destination) return destination.domain === name;
  return 'domain_suffix' in destination && `.${name}`.endsWith(`.${destination.domain_suffix}`);
}

function isPeer(rule: Rule, flow: Flow, place: Place): boolean {
  const { destination } = rule;
  if (destination === 'any') return flow.address !== '0.0.0.0';
  if ('group' in destination) return referenceGroup(flow.address, place) === destination.group;
  if ('cidr' in destination) {
    const [base = '', prefix] = destination.cidr.split('/');
    const isIpv6 = flow.address.includes(':');
    if (isIpv6 !== base.includes(':')) return false;
    const bits = (text: string) =>
      text
        .split(isIpv6 ? ':' : '.')
        .map((part) =>
          Number.parseInt(part, isIpv6 ? 16 : 10)
            .toString(2)
            .padStart(isIpv6 ? 16 : 8, '0'),
        )
        .join('');
    return bits(flow.address).startsWith(bits(base).slice(0, Number(prefix)));
  }
  if (flow.direction !== 'egress') return false;
  if (flow.sni === undefined)
    return (
      !(flow.strict === true && rule.action === 'allow') && flow.names.some((name) => saysName(rule, name))
    );
  return saysName(rule, flow.sni) && (rule.action === 'deny' || flow.names.includes(flow.sni));
}
