import { cidr, parseAddress, type Address } from '../policy/address.ts';
import type { HostNetworks } from '../policy/groups.ts';

export function at(text: string): Address {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} is no address`);
  return address;
}

/** A host with a private and a public address, each in a network with other hosts. */
export const HOST_NETWORKS: HostNetworks = {
  gateway: at('172.30.0.1'),
  hostAddresses: [at('192.168.7.5'), at('8.8.4.4'), at('127.0.0.1')],
  neighbours: [cidr('192.168.7.0/24'), cidr('8.8.4.0/24')],
  pool: cidr('172.30.0.0/16'),
};
