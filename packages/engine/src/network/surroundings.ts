import { networkInterfaces } from 'node:os';
import { cidr, parseAddress, parseCidr, type Address } from '../policy/address.ts';
import type { Surroundings } from '../policy/groups.ts';
import type { AddressPool } from './address-pool.ts';

/** What addresses are to a sandbox of this host, which is part of `networks`. */
export function surroundingsOf(pool: AddressPool, networks: readonly string[]): Surroundings {
  return {
    gateway: known(pool.gateway),
    hostAddresses: Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ address }) => parseAddress(address) ?? []),
    neighbours: networks.flatMap((network) => parseCidr(network) ?? []),
    pool: cidr(pool.cidr),
  };
}

function known(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} is no address`);
  return address;
}
