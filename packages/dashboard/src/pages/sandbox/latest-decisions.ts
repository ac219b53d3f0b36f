import type { NetworkDecision } from '@svc/sdk';

/** Newest first. What happens again comes again, with a higher count: of those only the latest. */
export function latestDecisions(entries: readonly NetworkDecision[]): readonly NetworkDecision[] {
  const latest = new Map<string, NetworkDecision>();
  for (const entry of entries) {
    const key = keyOfDecision(entry);
    // So that it stands where the newest stand.
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
