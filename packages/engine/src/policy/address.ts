/** An address as a number, with its family, which gives the number of bits. IPv4-mapped IPv6 (::ffff:a.b.c.d) is IPv4. */
export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

export interface Cidr extends Address {
  readonly prefixLength: number;
}

const BITS = { 4: 32, 6: 128 } as const;
const MAPPED_PREFIX = 0xffffn;
const MAPPED_BITS = 96;

/** Null unless the text is an address in one of the two standard notations; decimal, octal and short forms are refused. */
export function parseAddress(text: string): Address | null {
  if (text.includes(':')) return parseIpv6(text);
  const value = parseIpv4(text);
  return value === null ? null : { family: 4, value };
}

/** Parses an address or a range. Bits behind the prefix must be 0; otherwise the range is ambiguous. */
export function parseCidr(text: string): Cidr | null {
  const [base = '', prefix, ...more] = text.split('/');
  const raw = base.includes(':') ? parseRawIpv6(base) : parseIpv4(base);
  if (raw === null || more.length > 0) return null;
  const bits = base.includes(':') ? BITS[6] : BITS[4];
  if (prefix !== undefined && !/^\d{1,3}$/.test(prefix)) return null;
  const prefixLength = prefix === undefined ? bits : Number(prefix);
  if (prefixLength > bits) return null;
  if (raw & ((1n << BigInt(bits - prefixLength)) - 1n)) return null;
  if (bits === BITS[6] && raw >> 32n === MAPPED_PREFIX && prefixLength >= MAPPED_BITS)
    return { family: 4, value: raw & 0xffffffffn, prefixLength: prefixLength - MAPPED_BITS };
  return { family: bits === BITS[6] ? 6 : 4, value: raw, prefixLength };
}

/** Parses a range that is a constant of the program. */
export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === null) throw new Error(`${text} is no range of addresses`);
  return parsed;
}

export function contains(range: Cidr, address: Address): boolean {
  if (range.family !== address.family) return false;
  const shift = BigInt(BITS[range.family] - range.prefixLength);
  return range.value >> shift === address.value >> shift;
}

export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, n) => (value >> BigInt(112 - 16 * n)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join(':');
}

export function formatCidr(range: Cidr): string {
  return `${formatAddress(range)}/${range.prefixLength}`;
}

/** Reads the 4 or 16 bytes of an address in network order; null for any other length. */
export function addressFromBytes(bytes: Uint8Array): Address | null {
  if (bytes.length !== 4 && bytes.length !== 16) return null;
  const value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return bytes.length === 4 ? { family: 4, value } : normalized(value);
}

function parseIpv6(text: string): Address | null {
  const value = parseRawIpv6(text);
  return value === null ? null : normalized(value);
}

function normalized(value: bigint): Address {
  return value >> 32n === MAPPED_PREFIX ? { family: 4, value: value & 0xffffffffn } : { family: 6, value };
}

function parseIpv4(text: string): bigint | null {
  const parts = text.split('.');
  // Some programs read a leading 0 as octal.
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255))
    return null;
  return parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
}

function parseRawIpv6(text: string): bigint | null {
  const [head = '', tail, ...more] = text.split('::');
  if (more.length > 0) return null;
  const before = parseGroups(head, tail === undefined);
  const behind = parseGroups(tail ?? '', true);
  if (before === null || behind === null) return null;
  const missing = 8 - before.length - behind.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...before, ...Array.from({ length: missing }, () => 0n), ...behind];
  return groups.reduce((sum, group) => (sum << 16n) | group, 0n);
}

/** Parses the groups between colons; the last may be an IPv4 address, which counts as two. */
function parseGroups(text: string, mayEndInIpv4: boolean): readonly bigint[] | null {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: bigint[] = [];
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(BigInt(`0x${part}`));
      continue;
    }
    const embedded = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4(part) : null;
    if (embedded === null) return null;
    groups.push(embedded >> 16n, embedded & 0xffffn);
  }
  return groups;
}
