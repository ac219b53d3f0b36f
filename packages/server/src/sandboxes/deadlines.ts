import type { SandboxRecord } from '../store/sandboxes.ts';

const MINUTE_MS = 60_000;

/** How long a sandbox may be on its way; then it has failed. In every other state it may stay, or has a time of its own. */
const LONGEST_MS = 15 * MINUTE_MS;

/** When a sandbox that is on its way must have arrived, in milliseconds since the epoch. */
export function deadlineOf({ stateSince }: Pick<SandboxRecord, 'stateSince'>): number {
  return Date.parse(stateSince) + LONGEST_MS;
}
