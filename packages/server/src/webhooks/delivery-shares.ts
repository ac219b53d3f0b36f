import type { DueWebhook } from '../store/webhook-deliveries.ts';

/** Limits of parallel deliveries. */
const MOST_PER_WEBHOOK = 4;
const MOST_PER_ORGANIZATION = 16;
const MOST = 256;

/**
 * Whether one more delivery may begin. A slow receiver delays only its own organization: an organization may hold as many places as are
 * free, so that another one always finds one, no matter how many organizations one user has.
 */
export function hasRoom(underWay: readonly DueWebhook[], { id, organizationId }: DueWebhook): boolean {
  const own = underWay.filter((other) => other.organizationId === organizationId);
  const most = Math.min(MOST_PER_ORGANIZATION, MOST - underWay.length);
  return own.length < most && own.filter((other) => other.id === id).length < MOST_PER_WEBHOOK;
}
