import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { formatCidr } from '../policy/address.ts';
import { readIpv6Routes } from './host-ipv6.ts';
import { readRoutes, type Route } from './host-routing.ts';

const POLL_INTERVAL_MS = 2000;
/**
 * Every so many checks the networks are read in full. Between them only the kernel's tables are compared, which can miss an interface
 * without a route that loses and regains its carrier.
 */
const WHOLE_EVERY = 5;
/** Routes of both families, and addresses without a route; sandboxes have a line or two in each. */
const TABLES = ['/proc/net/route', '/proc/net/ipv6_route', '/proc/net/fib_trie'];

/**
 * The networks that this host is connected to, as `address/prefix`; IPv4 networks inside of another are left out. A host's own network may
 * have any range, also public ones: its hosts count as neighbours, not as the internet.
 */
export async function connectedNetworks(ownPrefix: string): Promise<readonly string[]> {
  const routed = (await readRoutes()).filter(({ isOnLink }) => isOnLink);
  const ipv6 = (await readIpv6Routes()).filter(
    (route) => route.isOnLink && !route.interface.startsWith(ownPrefix),
  );
  return [
    ...distinctNetworks([...addressed(), ...routed].filter((each) => !each.interface.startsWith(ownPrefix))),
    ...new Set(ipv6.map(({ range }) => formatCidr(range)).toSorted()),
  ];
}

/** Calls `onChange` with the networks whenever they differ from `known`. Dispose it to stop. */
export function followConnectedNetworks(
  ownPrefix: string,
  known: readonly string[],
  onChange: (networks: readonly string[]) => Promise<void>,
  onFailure: (error: unknown) => void,
): Disposable {
  let current = known;
  let seen: string | undefined;
  let polls = 0;
  const look = async () => {
    const tables = readTables();
    if (tables !== undefined && tables === seen && ++polls % WHOLE_EVERY !== 0) return;
    const networks = await connectedNetworks(ownPrefix);
    if (!isDeepStrictEqual(networks, current)) await onChange(networks);
    // Set only after `onChange`, so that a failed change is retried.
    current = networks;
    seen = tables;
  };
  let looking: Promise<void> | null = null;
  const timer = setInterval(() => {
    looking ??= look()
      .catch(onFailure)
      .finally(() => (looking = null));
  }, POLL_INTERVAL_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The raw text, because parsing every line takes ten times as long. Undefined when a table is missing. */
function readTables(): string | undefined {
  try {
    return TABLES.map((file) => readFileSync(file, 'latin1')).join('\n');
  } catch {
    return undefined;
  }
}

type Network = Pick<Route, 'interface' | 'base' | 'prefixLength'>;

export function distinctNetworks(networks: readonly Network[]): readonly string[] {
  const ranges = networks
    // Leaves out default routes.
    .filter(({ prefixLength }) => prefixLength > 0)
    .map(({ base, prefixLength }) => ({ base: masked(toNumber(base), prefixLength), prefixLength }));
  const texts = ranges
    .filter(({ base, prefixLength }) =>
      ranges.every(
        (other) => other.prefixLength >= prefixLength || masked(base, other.prefixLength) !== other.base,
      ),
    )
    .map(({ base, prefixLength }) => `${toText(base)}/${prefixLength}`);
  return [...new Set(texts)].toSorted();
}

function addressed(): Network[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address, cidr }) => ({
        interface: name,
        base: address,
        prefixLength: Number(cidr?.split('/')[1] ?? 32),
      })),
  );
}

function masked(address: number, prefixLength: number): number {
  return (address & (0xffffffff << (32 - prefixLength))) >>> 0;
}

function toNumber(text: string): number {
  return text.split('.').reduce((sum, part) => ((sum << 8) | Number(part)) >>> 0, 0);
}

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
}
