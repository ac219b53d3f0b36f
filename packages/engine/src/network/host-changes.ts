import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from 'pino';
import { enableForwarding } from './host-routing.ts';
import { linkPrefix, tableName } from './ruleset.ts';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 10_000;

/** Enables forwarding on this host. If it was disabled before, the change is logged and recorded. */
export async function forwardPackets(runFolder: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  if (!(await enableForwarding())) return;
  logger.warn({ setting: 'net.ipv4.ip_forward' }, 'Turned on IPv4 forwarding for this host');
  const record = JSON.stringify({ changed: { 'net.ipv4.ip_forward': { from: '0', to: '1' } } });
  await writeFile(join(runFolder, 'host-changes.json'), record, { mode: 0o600 });
}

/** Warns of firewalls of this host that would drop packets of sandboxes. */
export async function warnOfObstacles(instance: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const chains = await findFirewallObstacles(tableName(instance));
  if (chains.length === 0) return;
  const details = { chains, interfaces: `${linkPrefix(instance)}*` };
  logger.warn(details, 'A firewall drops by default; let it accept these interfaces');
}

interface Chain {
  readonly family?: string;
  readonly table?: string;
  readonly name?: string;
  readonly hook?: string;
  readonly policy?: string;
}

/**
 * Finds chains of other programs (Docker, ufw, firewalld) that drop forwarded or incoming packets by default. An accept verdict in our
 * table does not override them, so sandboxes may have no network until those firewalls allow them.
 */
export async function findFirewallObstacles(ownTable: string): Promise<readonly string[]> {
  const { stdout } = await run('nft', ['-j', 'list', 'chains'], { timeout: COMMAND_TIMEOUT_MS });
  return chainsThatDrop(JSON.parse(stdout), ownTable);
}

export function chainsThatDrop(listing: unknown, ownTable: string): readonly string[] {
  // The format of `nft -j`, see libnftables-json(5).
  const { nftables } = listing as { readonly nftables: readonly { readonly chain?: Chain }[] };
  return nftables
    .flatMap(({ chain }) => (chain === undefined ? [] : [chain]))
    .filter(({ table }) => table !== ownTable)
    .filter(({ hook, policy }) => policy === 'drop' && (hook === 'forward' || hook === 'input'))
    .map(({ family, table, name }) => `${family} ${table} ${name}`);
}
