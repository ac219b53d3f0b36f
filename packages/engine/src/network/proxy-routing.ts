import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 10_000;
/** Before the rules of VPNs and the like, which match all packets. */
const PREFERENCE = '180';
/** Distinguishes our marks and tables from those of other programs; the lower bits identify the engine. */
const OURS = 0x5c000000;
const OWN_BITS = 0xffffff;
const FIRST_GROUP = 0xfe000000;

/** The mark of packets to the proxy of an engine, and the routing table for them. */
export function proxyMark(instance: string): number {
  return OURS + (Number.parseInt(instance, 16) & OWN_BITS);
}

/** The group id of the proxies of an engine: above all ids that engines give to sandboxes. */
export function proxyGroup(instance: string): number {
  return FIRST_GROUP + (Number.parseInt(instance, 16) & OWN_BITS);
}

/**
 * Delivers marked packets to this host for any destination address: one rule, and one route in a table of its own. Succeeds when an earlier
 * engine has left them.
 */
export async function addProxyRouting(instance: string, family: Family = '-4'): Promise<void> {
  const mark = String(proxyMark(instance));
  await ip(family, 'route', 'replace', 'local', 'default', 'dev', 'lo', 'table', mark);
  if (!(await hasRule(family, mark))) await ip(family, 'rule', 'add', ...ruleOf(mark));
}

export async function removeProxyRouting(instance: string, family: Family = '-4'): Promise<void> {
  const mark = String(proxyMark(instance));
  if (await hasRule(family, mark)) await ip(family, 'rule', 'delete', ...ruleOf(mark));
  await ip(family, 'route', 'flush', 'table', mark).catch((error: unknown) => {
    // Exit code 2: the table does not exist any more.
    if (!(error instanceof Error && 'code' in error && error.code === 2)) throw error;
  });
}

function ruleOf(mark: string): readonly string[] {
  return ['fwmark', mark, 'lookup', mark, 'pref', PREFERENCE];
}

async function hasRule(family: Family, mark: string): Promise<boolean> {
  return (await ip(family, 'rule', 'list', 'lookup', mark)).trim() !== '';
}

type Family = '-4' | '-6';

async function ip(...words: readonly string[]): Promise<string> {
  // SAFETY: no shell, a fixed program; the arguments are constants and numbers.
  return (await run('ip', words, { timeout: COMMAND_TIMEOUT_MS })).stdout;
}
