import type { SandboxRecord } from '../store/sandboxes.ts';

const MINUTE_MS = 60_000;

/** Longest time in a transitional state; after that the sandbox has failed. Other states are unlimited or have a limit of their own. */
const LONGEST_MS = 15 * MINUTE_MS;

/** When a sandbox in a transitional state counts as failed, in milliseconds since the epoch. */
export function deadlineOf({ stateSince }: Pick<SandboxRecord, 'stateSince'>): number {
  return Date.parse(stateSince) + LONGEST_MS;
}
