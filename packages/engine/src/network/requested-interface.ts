import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { formatAddress, formatCidr, parseAddress, parseCidr } from '../policy/address.ts';

/** The properties of its interface that a sandbox requests; null: chosen by the engine. */
export interface RequestedInterface {
  readonly address: string | null;
  /** The range for the address. */
  readonly range: string | null;
  readonly ipv6Address: string | null;
  readonly ipv6Range: string | null;
  readonly mac: string | null;
  readonly mtu: number | null;
}

type Given = NonNullable<Network['interface']>;

/** Null without a request. @throws PlatformError `invalid_sandbox_config` that names the field. */
export function readRequestedInterface(network: Network | undefined): RequestedInterface | null {
  const given = network?.interface ?? {};
  if (Object.values(given).every((value) => value === null)) return null;
  if (network?.enabled === false)
    throw new PlatformError(
      'invalid_sandbox_config',
      'network.interface: there is none while network.enabled is false; leave one of them out',
      { details: { field: 'network.interface', reason: 'there is no interface' } },
    );
  const { ipv4_address: address = null, ipv4_pool: range = null, mac = null, mtu = null } = given;
  const { ipv6_address: ipv6Address = null, ipv6_pool: ipv6Range = null } = given;
  return {
    address: address === null ? null : readAddress(address),
    range: range === null ? null : readRange(range),
    ipv6Address: ipv6Address === null ? null : readIpv6Address(ipv6Address),
    ipv6Range: ipv6Range === null ? null : readIpv6Range(ipv6Range),
    mac: mac === null ? null : readMac(mac),
    mtu,
  };
}

export function wrongInterface(name: keyof Given, reason: string): PlatformError {
  const field = `network.interface.${name}`;
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}

function readAddress(text: string): string {
  if (parseAddress(text)?.family !== 4 || text.includes(':'))
    throw wrongInterface('ipv4_address', 'must be an IPv4 address such as 172.20.0.7');
  return text;
}

function readRange(text: string): string {
  if (parseCidr(text)?.family !== 4 || text.includes(':'))
    throw wrongInterface('ipv4_pool', 'must be a range such as 172.20.4.0/24 (bits behind the prefix 0)');
  return text.includes('/') ? text : `${text}/32`;
}

function readIpv6Address(text: string): string {
  const address = parseAddress(text);
  if (address?.family !== 6)
    throw wrongInterface('ipv6_address', 'must be an IPv6 address such as fd12::ac14:7');
  return formatAddress(address);
}

function readIpv6Range(text: string): string {
  const range = parseCidr(text);
  if (range?.family !== 6)
    throw wrongInterface(
      'ipv6_pool',
      'must be a range such as fd12::ac14:400/120 (bits behind the prefix 0)',
    );
  return formatCidr(range);
}

/** The lowest bit of the first byte marks a group address. */
const GROUP_BIT = 1;

function readMac(bytes: readonly number[]): string {
  if (((bytes[0] ?? 0) & GROUP_BIT) !== 0 || bytes.every((byte) => byte === 0))
    throw wrongInterface(
      'mac',
      'must be the address of one station: its first byte even, and not all of them 0',
    );
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
