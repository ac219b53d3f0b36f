import type { Group } from '@svc/contract/orchestrator';
import { contains, parseAddress } from './address.ts';
import { decide } from './decide.ts';
import { classify, type HostNetworks } from './groups.ts';
import type { ResolvedPolicy, Rule } from './resolve-policy.ts';

type Nameserver = ResolvedPolicy['dns']['nameservers'][number];

/**
 * Whether the resolver may query a nameserver for a sandbox: when the policy lets the sandbox reach it. The resolver queries from the host,
 * where loopback, multicast and the gateway of sandboxes differ from those inside, so no policy opens them.
 */
export function mayAsk(
  policy: ResolvedPolicy,
  { address: text, port }: Nameserver,
  protocol: 'tcp' | 'udp',
  hostNetworks: HostNetworks,
): boolean {
  const address = parseAddress(text);
  if (address === null || isNowhere(text, hostNetworks)) return false;
  const rules = policy.rules.filter((rule) => !isAboutResolver(rule));
  const flow = { direction: 'egress', address, port, protocol, names: [] } as const;
  return decide({ ...policy, rules }, flow, hostNetworks).action === 'allow';
}

/** Whether no policy can open the address to queries. */
export function isNowhere(text: string, hostNetworks: HostNetworks): boolean {
  const address = parseAddress(text);
  if (address === null) return true;
  const { pool, ipv6 } = hostNetworks;
  if (contains(pool, address) || (ipv6 !== undefined && contains(ipv6.pool, address))) return true;
  const group = classify(address, hostNetworks);
  return group !== null && CLOSED_GROUPS.has(group);
}

const CLOSED_GROUPS: ReadonlySet<Group> = new Set(['loopback', 'multicast']);
const DNS_PORT = 53;

/**
 * Whether a rule concerns the resolver. Port 53 of the host is the resolver for a sandbox: access to it does not include another server on
 * that port.
 */
export function isAboutResolver({ action, destination, ports }: Rule): boolean {
  const isHost = destination.kind === 'group' && destination.group === 'host';
  const isDns = ports.length > 0 && ports.every(({ start, end }) => start === DNS_PORT && end === DNS_PORT);
  return action === 'allow' && isHost && isDns;
}
