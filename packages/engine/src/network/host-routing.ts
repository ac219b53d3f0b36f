import { execFile } from 'node:child_process';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { promisify } from 'node:util';
import { PlatformError } from '@svc/contract/errors';
import type { AddressPool } from './address-pool.ts';

const run = promisify(execFile);
const IP_FORWARD = '/proc/sys/net/ipv4/ip_forward';
const SYS_CLASS_NET = '/sys/class/net';
const COMMAND_TIMEOUT_MS = 10_000;

/**
 * Adds the address of the gateway and resolver to lo, where it exists before the first sandbox and after the last one. Fails when another
 * program of this host has the address; succeeds when this engine has it already.
 */
export async function addGateway(gateway: string): Promise<void> {
  if (hasGateway(gateway)) return;
  const words = isIPv6(gateway) ? [`${gateway}/128`, 'dev', 'lo', 'nodad'] : [`${gateway}/32`, 'dev', 'lo'];
  await run('ip', ['address', 'add', ...words], { timeout: COMMAND_TIMEOUT_MS });
}

export async function removeGateway(gateway: string): Promise<void> {
  if (!hasGateway(gateway)) return;
  const own = `${gateway}/${isIPv6(gateway) ? 128 : 32}`;
  await run('ip', ['address', 'delete', own, 'dev', 'lo'], { timeout: COMMAND_TIMEOUT_MS });
}

function hasGateway(gateway: string): boolean {
  return networkInterfaces()['lo']?.some(({ address }) => address === gateway) ?? false;
}

/** Enables forwarding of IPv4, without which sandboxes reach no other host. Returns whether it had been disabled. */
export async function enableForwarding(): Promise<boolean> {
  if ((await readFile(IP_FORWARD, 'utf8')).trim() === '1') return false;
  // SAFETY: from now on this host routes between all its interfaces unless its firewall forbids it; documented.
  await writeFile(IP_FORWARD, '1');
  return true;
}

/** Refuses a pool that overlaps with a route of this host, because its sandboxes would hide real neighbours. */
export async function refuseOverlap(pool: AddressPool, ownPrefix: string): Promise<void> {
  for (const route of await readRoutes()) {
    if (route.prefixLength === 0 || route.interface.startsWith(ownPrefix)) continue;
    if (!pool.overlaps(route.base, route.prefixLength)) continue;
    throw new PlatformError(
      'unavailable',
      `The address pool ${pool.cidr} overlaps with a route of this host to ${route.base}/${route.prefixLength} (${route.interface}); choose another pool`,
      { details: { pool: pool.cidr, interface: route.interface } },
    );
  }
}

export async function interfacesWithPrefix(prefix: string): Promise<readonly string[]> {
  return (await readdir(SYS_CLASS_NET)).filter((name) => name.startsWith(prefix));
}

export interface Route {
  readonly interface: string;
  readonly base: string;
  readonly prefixLength: number;
  /** True for a network that this host is connected to without a gateway. */
  readonly isOnLink: boolean;
}

/** Parses the kernel's main table: interface, destination, gateway, flags, …, mask in the 8th column. */
export async function readRoutes(): Promise<readonly Route[]> {
  const [, ...lines] = (await readFile('/proc/net/route', 'utf8')).trim().split('\n');
  return lines.map((line) => {
    const columns = line.trim().split(/\s+/);
    const bits = [...Buffer.from(columns[7] ?? '', 'hex')].map((byte) => byte.toString(2)).join('');
    return {
      interface: columns[0] ?? '',
      // The kernel prints it in little-endian order.
      base: [...Buffer.from(columns[1] ?? '', 'hex')].toReversed().join('.'),
      prefixLength: bits.replaceAll('0', '').length,
      isOnLink: columns[2] === '00000000',
    };
  });
}
