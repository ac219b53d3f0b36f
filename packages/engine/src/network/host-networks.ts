import { networkInterfaces } from 'node:os';
import { cidr, parseAddress, parseCidr, type Address } from '../policy/address.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { AddressPool } from './address-pool.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';

/** The classification of addresses for a sandbox of this host, which is connected to `networks`. */
export function readHostNetworks(
  pool: AddressPool,
  ipv6Pool: Ipv6Pool | null,
  networks: readonly string[],
): HostNetworks {
  return {
    gateway: known(pool.gateway),
    hostAddresses: Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ address }) => parseAddress(address) ?? []),
    neighbours: networks.flatMap((network) => parseCidr(network) ?? []),
    pool: cidr(pool.cidr),
    ...(ipv6Pool === null ? {} : { ipv6: { gateway: known(ipv6Pool.gateway), pool: ipv6Pool.range } }),
  };
}

function known(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} is no address`);
  return address;
}
