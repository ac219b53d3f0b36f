/**
 * IPv4 ranges that a sandbox with reach `public` never gets to: loopback, private, link-local with the metadata
 * address, multicast and everything that is not a destination at all. The packet filter and the DNS forwarder share
 * this list, so that a name never resolves to an address that would be dropped.
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
  '192.168.0.0/16',
  // For tests between networks: where it is routed at all, it is inside.
  '198.18.0.0/15',
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
  return (at(bytes, 0) & 0xe0) === 0x20;
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
