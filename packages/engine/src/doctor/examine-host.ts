import type { HostReport } from './finding.ts';
import { judgeHost } from './judge.ts';
import { readHostFacts } from './read-host-facts.ts';

/**
 * Finds out what this host can do by trying it: mounts, namespaces and one empty sandbox per runtime, all removed again.
 * Works beside a running engine.
 */
export async function examineHost(options: {
  readonly dataFolder: string;
  /** Also try what takes seconds on hosts where it does not work. */
  readonly isThorough: boolean;
}): Promise<HostReport> {
  return judgeHost(await readHostFacts(options), new Date());
}
