import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { parseAddressPool } from './address-pool.ts';
import { readRoutes, type Route } from './host-routing.ts';

/** Ranges that other container tools use too, so any of them may be taken on a host. */
const CANDIDATES = Array.from({ length: 16 }, (_, n) => `172.${16 + n}.0.0/16`);

/**
 * Chooses an unused address pool for an engine that was given none. It is saved in the run folder, because sandboxes that survive a restart
 * of the engine keep their addresses.
 */
export async function chooseAddressPool(runFolder: string, instance: string): Promise<string> {
  const file = join(runFolder, 'address-pool');
  const remembered = await readFile(file, 'utf8').catch(() => null);
  if (remembered !== null) return remembered;
  const pool = firstFreePool(CANDIDATES, Number.parseInt(instance, 16), [
    ...(await readRoutes()),
    ...ownAddresses(),
  ]);
  await mkdir(runFolder, { recursive: true, mode: 0o700 });
  await writeFile(file, pool, { mode: 0o600 });
  return pool;
}

/** Starts at a different candidate for each `seed`, so that engines that start together rarely choose the same one. */
export function firstFreePool(
  candidates: readonly string[],
  seed: number,
  taken: readonly Pick<Route, 'base' | 'prefixLength'>[],
): string {
  const start = seed % candidates.length;
  const free = [...candidates.slice(start), ...candidates.slice(0, start)].find((candidate) => {
    const pool = parseAddressPool(candidate);
    return !taken.some(({ base, prefixLength }) => prefixLength > 0 && pool.overlaps(base, prefixLength));
  });
  if (free !== undefined) return free;
  throw new PlatformError(
    'unavailable',
    'This host has routes into every address pool we know; name a free one yourself',
  );
}

/** The host's own addresses, which include gateways of other engines that have no route of their own. */
function ownAddresses(): readonly Pick<Route, 'base' | 'prefixLength'>[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family }) => family === 'IPv4')
    .map(({ address }) => ({ base: address, prefixLength: 32 }));
}
