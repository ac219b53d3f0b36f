const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How webhooks are delivered. */
export interface WebhookSettings {
  /** How often it is looked for deliveries that are due. */
  readonly pollMs: number;
  /** From the look-up of the receiver's name to the last byte of its answer. */
  readonly timeoutMs: number;
  /** The pauses before the second and each further attempt; a fifth more or less, so that not all come at once. */
  readonly retryMs: readonly number[];
  /** How many messages may wait for one webhook; of more, the oldest are dropped. */
  readonly maxBacklog: number;
  /** How often it is looked for too many. */
  readonly trimMs: number;
  /** A webhook of which every attempt failed for so long is disabled. */
  readonly disableAfterMs: number;
}

export const DEFAULT_WEBHOOK_SETTINGS: WebhookSettings = {
  pollMs: SECOND_MS,
  timeoutMs: 15 * SECOND_MS,
  retryMs: [5 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS],
  maxBacklog: 10_000,
  trimMs: 10 * SECOND_MS,
  disableAfterMs: 5 * DAY_MS,
};
