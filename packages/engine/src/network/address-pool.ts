/** The IPv4 range of this engine: the first address is the gateway, the others are for sandboxes. */
export interface AddressPool {
  readonly cidr: string;
  readonly gateway: string;
  /** The number of addresses for sandboxes. */
  readonly size: number;
  addressOf(index: number): string;
  /** The sandbox indexes of a range's addresses; the first is above the last when there are none; null when the range is outside of the pool. */
  indexesOf(base: string, prefixLength: number): { readonly first: number; readonly last: number } | null;
  /** Whether the range and `cidr` share an address. */
  overlaps(base: string, prefixLength: number): boolean;
}

const SHORTEST_PREFIX = 8;
const LONGEST_PREFIX = 29;

export function parseAddressPool(cidr: string): AddressPool {
  const [base = '', prefix = ''] = cidr.split('/');
  const prefixLength = Number(prefix);
  if (!Number.isInteger(prefixLength) || prefixLength < SHORTEST_PREFIX || prefixLength > LONGEST_PREFIX) {
    throw new Error(
      `The address pool ${cidr} needs a prefix of ${SHORTEST_PREFIX} to ${LONGEST_PREFIX} bits`,
    );
  }
  const first = parseAddress(base);
  const count = 2 ** (32 - prefixLength);
  if (first % count !== 0)
    throw new Error(`The address pool ${cidr} does not start on a boundary of its size`);
  return {
    cidr,
    gateway: formatAddress(first + 1),
    // Excludes the network address, the gateway and the broadcast address.
    size: count - 3,
    addressOf: (index) => formatAddress(first + 2 + index),
    indexesOf: (otherBase, otherPrefix) => {
      const start = parseAddress(otherBase) - first;
      const end = start + 2 ** (32 - otherPrefix) - 1;
      if (start < 0 || end >= count) return null;
      return { first: Math.max(0, start - 2), last: Math.min(count - 4, end - 2) };
    },
    overlaps: (otherBase, otherPrefix) => {
      const otherCount = 2 ** (32 - otherPrefix);
      const otherFirst = Math.floor(parseAddress(otherBase) / otherCount) * otherCount;
      return first < otherFirst + otherCount && otherFirst < first + count;
    },
  };
}

function parseAddress(text: string): number {
  const parts = text.split('.').map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : 256));
  if (parts.length !== 4 || parts.some((part) => part > 255))
    throw new Error(`${text} is not an IPv4 address`);
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
}
