import { formatAddress, parseAddress } from './address.ts';

const IPV4_BITS = 0xffffffffn;

/**
 * The identity of a sandbox by its address: its IPv4 address, with which its IPv6 address ends. The packet filter guarantees that both are
 * genuine.
 */
export function clientOf(text: string): string {
  const address = parseAddress(text);
  return address === null ? text : formatAddress({ family: 4, value: address.value & IPV4_BITS });
}
