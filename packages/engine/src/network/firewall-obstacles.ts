import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 10_000;

interface Chain {
  readonly family?: string;
  readonly table?: string;
  readonly name?: string;
  readonly hook?: string;
  readonly policy?: string;
}

/**
 * Chains of other programs (Docker, ufw, firewalld) that drop by default what passes through this host or comes to it. A
 * verdict to accept in our table does not overrule them, so sandboxes may have no network until they are told about us.
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
