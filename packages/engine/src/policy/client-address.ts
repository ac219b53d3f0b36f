import { formatAddress, parseAddress } from './address.ts';

const IPV4_BITS = 0xffffffffn;

/**
 * What sandboxes are told apart by, whichever family they speak: their IPv4 address, with which their IPv6 address ends. The packet
 * filter vouches for both.
 */
export function clientOf(text: string): string {
  const address = parseAddress(text);
  return address === null ? text : formatAddress({ family: 4, value: address.value & IPV4_BITS });
}
