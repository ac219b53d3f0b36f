import type { NetworkDecision } from '@svc/sdk';

/** Merges decisions, newest first. A repeated decision arrives again with a higher count; only the latest entry is kept. */
export function latestDecisions(entries: readonly NetworkDecision[]): readonly NetworkDecision[] {
  const latest = new Map<string, NetworkDecision>();
  for (const entry of entries) {
    const key = keyOfDecision(entry);
    // Moves the entry to the end, where the newest are.
    latest.delete(key);
    latest.set(key, entry);
  }
  return [...latest.values()].toReversed();
}

export function keyOfDecision({
  first_ts,
  kind,
  verdict,
  host,
  address,
  port,
  reason,
}: NetworkDecision): string {
  return JSON.stringify([first_ts, kind, verdict, host, address, port, reason]);
}
