import { PlatformError } from '@svc/contract';

/** API keys of an organization that work. */
export const MAX_API_KEYS = 1000;
/** Personal access tokens of a user that work. */
export const MAX_TOKENS = 100;
/** Invites of an organization that nobody answered yet. */
export const MAX_INVITES = 1000;
/** Snapshots of an organization that are asked for and not made yet. */
export const MAX_PENDING_SNAPSHOTS = 100;

const ADVICE = {
  max_api_keys: 'The organization has as many API keys as it may; revoke one first',
  max_tokens: 'You have as many personal access tokens as you may; revoke one first',
  max_invites: 'The organization has as many open invites as it may; withdraw one first',
  max_pending_snapshots: 'As many snapshots wait to be made as may at once; try again when one is done',
} as const;

/** For one more than `count`. Ask after whoever owns them was locked. @throws PlatformError `quota_exceeded` */
export function requireFewer(limit: keyof typeof ADVICE, count: number, maximum: number): void {
  if (count < maximum) return;
  const value = count + 1;
  const message = `${ADVICE[limit]} (${limit} is ${maximum}, this makes it ${value})`;
  throw new PlatformError('quota_exceeded', message, { details: { limit, value, maximum } });
}
