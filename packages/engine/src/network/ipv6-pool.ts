import { PlatformError } from '@svc/contract/errors';
import { clientOf } from '../policy/client-address.ts';
import {
  cidr,
  contains,
  formatAddress,
  parseAddress,
  parseCidr,
  type Address,
  type Cidr,
} from '../policy/address.ts';
import type { SlotLink } from './network.ts';

/** The IPv6 range of this engine. The IPv6 address of a sandbox ends with its IPv4 address, so that either address identifies the sandbox. */
export interface Ipv6Pool {
  readonly range: Cidr;
  readonly gateway: string;
  addressOf(ipv4Address: string): string;
  /** The IPv4 range, as `address/prefix`, of the sandboxes whose IPv6 addresses are in `range`; null when that is outside of the pool. */
  ipv4RangeOf(range: Cidr): string | null;
}

const PREFIX_LENGTH = 96;
/** Unique local and global unicast addresses; all other ranges have special meanings. */
const ROUTABLE = ['fc00::/7', '2000::/3'].map(cidr);

/** Parses the option; `auto` is a range that only this engine has. @throws PlatformError `invalid_request` */
export function parseIpv6Pool(text: string, instance: string, ipv4Gateway: string): Ipv6Pool {
  const range = parseCidr(text === 'auto' ? ownRange(instance) : text);
  if (
    range?.family !== 6 ||
    range.prefixLength !== PREFIX_LENGTH ||
    !ROUTABLE.some((each) => contains(each, range))
  )
    throw new PlatformError(
      'invalid_request',
      `--ipv6-pool must be auto, or a range of ${2 ** 32} addresses such as fd12:3456:789a::/96, not ${text}`,
    );
  const addressOf = (ipv4Address: string) =>
    shortened({ family: 6, value: range.value | valueOf(ipv4Address) });
  return {
    range,
    gateway: addressOf(ipv4Gateway),
    addressOf,
    ipv4RangeOf: (wanted) => {
      if (!contains(range, wanted) || wanted.prefixLength < PREFIX_LENGTH) return null;
      return `${clientOf(formatAddress(wanted))}/${wanted.prefixLength - PREFIX_LENGTH}`;
    },
  };
}

/** Drops the IPv6 addresses of a link that was made for another range. */
export function withinPool({ ipv6, ...link }: SlotLink, pool: Ipv6Pool | null): SlotLink {
  return ipv6 !== undefined && ipv6.gateway === pool?.gateway ? { ...link, ipv6 } : link;
}

/** Unique local addresses (RFC 4193) require 40 random bits after fd; the random digits of the instance's name supply them. */
function ownRange(instance: string): string {
  const digits = instance.padStart(8, '0');
  return `fd5c:${digits.slice(0, 4)}:${digits.slice(4)}::/96`;
}

function valueOf(ipv4Address: string): bigint {
  const address = parseAddress(ipv4Address);
  if (address?.family !== 4) throw new Error(`${ipv4Address} is no IPv4 address`);
  return address.value;
}

/** The short form that the kernel writes too: the longest run of zeros is left out. */
function shortened(address: Address): string {
  return new URL(`http://[${formatAddress(address)}]`).hostname.slice(1, -1);
}
