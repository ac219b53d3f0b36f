import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { findFirewallObstacles } from './firewall-obstacles.ts';
import { enableForwarding } from './host-routing.ts';
import { linkPrefix, tableName } from './ruleset.ts';

/** Lets this host pass on packets; that it did not before is told, and written down. */
export async function forwardPackets(runFolder: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  if (!(await enableForwarding())) return;
  logger.warn({ setting: 'net.ipv4.ip_forward' }, 'Turned on IPv4 forwarding for this host');
  const record = JSON.stringify({ changed: { 'net.ipv4.ip_forward': { from: '0', to: '1' } } });
  await writeFile(join(runFolder, 'host-changes.json'), record, { mode: 0o600 });
}

/** Tells of firewalls of this host that would drop what sandboxes send. */
export async function warnOfObstacles(instance: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const chains = await findFirewallObstacles(tableName(instance));
  if (chains.length === 0) return;
  const details = { chains, interfaces: `${linkPrefix(instance)}*` };
  logger.warn(details, 'A firewall drops by default; let it accept these interfaces');
}
