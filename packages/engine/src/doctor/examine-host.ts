import type { HostReport } from './finding.ts';
import { judgeHost } from './judge.ts';
import { readHostFacts } from './read-host-facts.ts';

/**
 * Finds out what this host can do by trying it: mounts, namespaces and one empty sandbox per runtime, all removed again.
 * Works beside a running engine.
 */
export async function examineHost(options: {
  readonly dataFolder: string;
  /** Includes tries that take seconds on hosts where they fail. */
  readonly isThorough: boolean;
}): Promise<HostReport> {
  return judgeHost(await readHostFacts(options), new Date());
}
