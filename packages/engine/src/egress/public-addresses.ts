/**
 * IPv4 ranges that a sandbox with reach `public` never gets to: the whole of IANA's registry of special-purpose addresses, multicast,
 * and one address of a cloud. Where such a range is routed at all, it is inside. The packet filter and the DNS forwarder share this
 * list, so that a name never resolves to an address that would be dropped.
 * https://www.iana.org/assignments/iana-ipv4-special-registry
 */
export const NOT_PUBLIC_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Looks public, and is the host's side of every virtual machine of Azure: it hands out configuration and certificates.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  // Reserved for protocols; some clouds have their metadata service there.
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const;

/** Takes the 4 or 16 bytes of an address as they stand in a packet. Any other length is not public. */
export function isPublicAddress(bytes: Uint8Array): boolean {
  if (bytes.length === 4) return isPublicIpv4(bytes);
  if (bytes.length !== 16) return false;
  const embedded = embeddedIpv4(bytes);
  if (embedded !== null) return isPublicIpv4(embedded);
  // 2000::/3 is all of global unicast; the rest is loopback, unique local, link-local, multicast or unassigned.
  return (at(bytes, 0) & 0xe0) === 0x20 && SPECIAL_IPV6.every((prefix) => !startsWith(bytes, prefix));
}

/**
 * What IANA's registry of special-purpose addresses has inside global unicast, as leading bits: protocol assignments with Teredo,
 * documentation (two ranges), and the black hole for reverse lookups.
 * https://www.iana.org/assignments/iana-ipv6-special-registry
 */
const SPECIAL_IPV6 = [
  { bytes: [0x20, 0x01, 0x00], bits: 23 },
  { bytes: [0x20, 0x01, 0x0d, 0xb8], bits: 32 },
  { bytes: [0x26, 0x20, 0x00, 0x4f, 0x80, 0x00], bits: 48 },
  { bytes: [0x3f, 0xff, 0x00], bits: 20 },
] as const;

function startsWith(address: Uint8Array, prefix: (typeof SPECIAL_IPV6)[number]): boolean {
  return prefix.bytes.every((byte, index) => {
    const bits = Math.max(0, Math.min(8, prefix.bits - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (at(address, index) & mask) === (byte & mask);
  });
}

const RANGES = NOT_PUBLIC_IPV4.map((range) => {
  const [base = '', prefix = ''] = range.split('/');
  const mask = (0xffffffff << (32 - Number(prefix))) >>> 0;
  return { base: toNumber(base.split('.').map(Number)), mask };
});

function isPublicIpv4(bytes: ArrayLike<number>): boolean {
  const address = toNumber(bytes);
  return RANGES.every(({ base, mask }) => (address & mask) >>> 0 !== base);
}

/** An IPv6 address that stands for an IPv4 one: mapped (::ffff:0:0/96), translated (64:ff9b::/96) or 6to4 (2002::/16). */
function embeddedIpv4(bytes: Uint8Array): Uint8Array | null {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('hex');
  if (head === '00000000000000000000ffff' || head === '0064ff9b0000000000000000') return bytes.subarray(12);
  return head.startsWith('2002') ? bytes.subarray(2, 6) : null;
}

function toNumber(parts: ArrayLike<number>): number {
  return ((at(parts, 0) << 24) | (at(parts, 1) << 16) | (at(parts, 2) << 8) | at(parts, 3)) >>> 0;
}

function at(parts: ArrayLike<number>, index: number): number {
  return parts[index] ?? 0;
}
