import type { HostCalls } from './host-calls.ts';

export type Link = NonNullable<Parameters<HostCalls['createNamespaces']>[0]['link']>;

/** The parts of a link, in the order in which svc-host reads them; none without a link. */
export function linkWords(link: Link | null): readonly string[] {
  if (link === null) return [];
  const { hostInterface, address, gateway, mtu, mac, ipv6 } = link;
  const words = [hostInterface, address, gateway, String(mtu), mac];
  return ipv6 === undefined ? words : [...words, ipv6.address, ipv6.gateway];
}
