const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Settings of webhook deliveries. */
export interface WebhookSettings {
  /** Poll interval for deliveries that are due. */
  readonly pollMs: number;
  /** From the resolution of the receiver's name to the last byte of its answer. */
  readonly timeoutMs: number;
  /** The pauses before the second and each further attempt, with a jitter of a fifth. */
  readonly retryMs: readonly number[];
  /** Limit of messages that wait for one webhook; beyond it the oldest are dropped. */
  readonly maxBacklog: number;
  /** Interval of the check of backlogs. */
  readonly trimMs: number;
  /** A webhook whose attempts have all failed for so long is disabled. */
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
