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

/**
 * A range of IPv6 addresses that belongs to this engine. A sandbox has the one that ends with its IPv4 address, so that whoever meets
 * either knows which sandbox it is.
 */
export interface Ipv6Pool {
  readonly range: Cidr;
  readonly gateway: string;
  addressOf(ipv4Address: string): string;
  /** The IPv4 addresses, as `address/prefix`, of sandboxes that have addresses of `range`; null when that does not lie in the pool. */
  ipv4RangeOf(range: Cidr): string | null;
}

const PREFIX_LENGTH = 96;
/** Of organizations and of the internet; all others mean something else. */
const ROUTABLE = ['fc00::/7', '2000::/3'].map(cidr);

/** `auto` is a range that only this engine has. @throws PlatformError `invalid_request` */
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

/** What was wired for another range goes without IPv6. */
export function withinPool({ ipv6, ...link }: SlotLink, pool: Ipv6Pool | null): SlotLink {
  return ipv6 !== undefined && ipv6.gateway === pool?.gateway ? { ...link, ipv6 } : link;
}

/** Unique local addresses (RFC 4193) want 40 random bits behind fd; those of the instance are as random as its name. */
function ownRange(instance: string): string {
  const digits = instance.padStart(8, '0');
  return `fd5c:${digits.slice(0, 4)}:${digits.slice(4)}::/96`;
}

function valueOf(ipv4Address: string): bigint {
  const address = parseAddress(ipv4Address);
  if (address?.family !== 4) throw new Error(`${ipv4Address} is no IPv4 address`);
  return address.value;
}

/** As people and the kernel write it: the longest row of zeros left out. */
function shortened(address: Address): string {
  return new URL(`http://[${formatAddress(address)}]`).hostname.slice(1, -1);
}
