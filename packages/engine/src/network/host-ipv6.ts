import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import type { Logger } from 'pino';
import { addressFromBytes, contains, formatCidr, type Cidr } from '../policy/address.ts';
import { addGateway, removeGateway } from './host-routing.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';
import { addProxyRouting, removeProxyRouting } from './proxy-routing.ts';
import { linkPrefix } from './ruleset.ts';

const SETTINGS = '/proc/sys/net/ipv6/conf';
const ROUTES = '/proc/net/ipv6_route';

/** Makes this host the gateway of its sandboxes for IPv6 too. @throws PlatformError `unavailable` on a host without IPv6 */
export async function openIpv6(
  pool: Ipv6Pool,
  instance: string,
  { runFolder, logger }: { readonly runFolder: string; readonly logger: Pick<Logger, 'warn'> },
): Promise<void> {
  const isOff = await readFile(`${SETTINGS}/all/disable_ipv6`, 'utf8').catch(() => '1');
  if (isOff.trim() !== '0')
    throw new PlatformError(
      'unavailable',
      '--ipv6-pool: this host has no IPv6 (net.ipv6.conf.all.disable_ipv6); turn it on, or leave the option out',
    );
  await refuseIpv6Overlap(pool, instance);
  await addGateway(pool.gateway);
  await addProxyRouting(instance, '-6');
  const changed = await forwardIpv6();
  if (Object.keys(changed).length === 0) return;
  logger.warn({ changed }, 'Turned on IPv6 forwarding for this host');
  await writeFile(join(runFolder, 'host-changes-ipv6.json'), JSON.stringify({ changed }), { mode: 0o600 });
}

export async function closeIpv6(pool: Ipv6Pool, instance: string): Promise<void> {
  await removeProxyRouting(instance, '-6');
  await removeGateway(pool.gateway);
}

type Changed = Record<string, { readonly from: string; readonly to: string }>;

/**
 * SAFETY: from now on this host routes between all its interfaces unless its firewall forbids it. A routing host ignores router
 * advertisements, from which it may have its own address and default route, unless accept_ra is 2, so that is set first.
 */
async function forwardIpv6(): Promise<Changed> {
  const changed: Changed = {};
  const change = async (setting: string, from: string, to: string) => {
    const file = `${SETTINGS}/${setting}`;
    if ((await readFile(file, 'utf8').catch(() => to)).trim() !== from) return;
    await writeFile(file, to);
    changed[`net.ipv6.conf.${setting.replace('/', '.')}`] = { from, to };
  };
  if ((await readFile(`${SETTINGS}/all/forwarding`, 'utf8')).trim() === '1') return changed;
  for (const name of await readdir(SETTINGS)) if (name !== 'all') await change(`${name}/accept_ra`, '1', '2');
  await change('all/forwarding', '0', '1');
  return changed;
}

async function refuseIpv6Overlap({ range }: Ipv6Pool, instance: string): Promise<void> {
  for (const route of await readIpv6Routes()) {
    if (route.range.prefixLength === 0 || route.interface.startsWith(linkPrefix(instance))) continue;
    if (!contains(range, route.range) && !contains(route.range, range)) continue;
    throw new PlatformError(
      'unavailable',
      `The range ${formatCidr(range)} of --ipv6-pool overlaps with a route of this host to ${formatCidr(route.range)} (${route.interface}); choose another one`,
      { details: { pool: formatCidr(range), interface: route.interface } },
    );
  }
}

export interface Ipv6Route {
  readonly interface: string;
  readonly range: Cidr;
  /** True for a network that this host is connected to without a gateway. */
  readonly isOnLink: boolean;
}

/** Routes of the host itself and of multicast groups; neither is a network. */
const LOOPBACK = 'lo';
const SPECIAL = /^(?:fe[89ab]|ff)/;
const REJECTED = 0x200;

/** Parses the kernel's columns: destination, prefix length, source, its length, next hop, metric, two counts, flags, interface. */
export async function readIpv6Routes(): Promise<readonly Ipv6Route[]> {
  const text = await readFile(ROUTES, 'utf8').catch(() => '');
  return text
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [base = '', length = '', , , hop = '', , , , flags = '', name = ''] = line.trim().split(/\s+/);
      const address = addressFromBytes(Buffer.from(base, 'hex'));
      const isMeant =
        name !== LOOPBACK && !SPECIAL.test(base) && (Number.parseInt(flags, 16) & REJECTED) === 0;
      if (address?.family !== 6 || !isMeant) return [];
      const range = { ...address, prefixLength: Number.parseInt(length, 16) };
      return [{ interface: name, range, isOnLink: /^0+$/.test(hop) && range.prefixLength > 0 }];
    });
}
