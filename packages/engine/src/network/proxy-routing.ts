import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 10_000;
/** Looked at before the rules of VPNs and the like, which take what they find. */
const PREFERENCE = '180';
/** Tells our marks and tables from those of others; what follows is the engine's own. */
const OURS = 0x5c000000;
const OWN_BITS = 0xffffff;
const FIRST_GROUP = 0xfe000000;

/** What packets that go to the proxy of an engine are marked with, and the table that their way is looked up in. */
export function proxyMark(instance: string): number {
  return OURS + (Number.parseInt(instance, 16) & OWN_BITS);
}

/** The group of the proxies of an engine: above all that engines give to sandboxes. */
export function proxyGroup(instance: string): number {
  return FIRST_GROUP + (Number.parseInt(instance, 16) & OWN_BITS);
}

/**
 * Makes this host take what is marked for itself, whatever its address: one rule, and one route in a table of its own. Succeeds when
 * an earlier engine has left them.
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
    // 2: there is no such table any more.
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
  // SAFETY: no shell, a fixed program; the words are ours and numbers.
  return (await run('ip', words, { timeout: COMMAND_TIMEOUT_MS })).stdout;
}
