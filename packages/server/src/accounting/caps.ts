import { PlatformError } from '@svc/contract';

/** Valid API keys of an organization. */
export const MAX_API_KEYS = 1000;
/** Valid personal access tokens of a user. */
export const MAX_TOKENS = 100;
/** Invites of an organization without an answer. */
export const MAX_INVITES = 1000;
/** Snapshots of an organization that were requested and are not made yet. */
export const MAX_PENDING_SNAPSHOTS = 100;

const ADVICE = {
  max_api_keys: 'The organization has as many API keys as it may; revoke one first',
  max_tokens: 'You have as many personal access tokens as you may; revoke one first',
  max_invites: 'The organization has as many open invites as it may; withdraw one first',
  max_pending_snapshots: 'As many snapshots wait to be made as may at once; try again when one is done',
} as const;

/**
 * Checks that one more than `count` is allowed. Call it with the owner (organization or user) locked. @throws PlatformError
 * `quota_exceeded`
 */
export function requireFewer(limit: keyof typeof ADVICE, count: number, maximum: number): void {
  if (count < maximum) return;
  const value = count + 1;
  const message = `${ADVICE[limit]} (${limit} is ${maximum}, this makes it ${value})`;
  throw new PlatformError('quota_exceeded', message, { details: { limit, value, maximum } });
}
