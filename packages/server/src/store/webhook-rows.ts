/** Where an organization is told of its events. */
export interface WebhookRow {
  id: string;
  organization_id: string;
  url: string;
  description: string;
  /** JSON. */
  event_types: string;
  is_enabled: number;
  disabled_reason: string | null;
  /** Sealed. */
  secret: string;
  /** Sealed; signs too until the time beside it. */
  previous_secret: string | null;
  previous_secret_until: string | null;
  /** Of the first attempt of those that failed in a row, and how many they are. */
  failing_since: string | null;
  failures: number;
  created_at: string;
  updated_at: string;
}

/** One event on its way to one webhook. */
export interface WebhookDeliveryRow {
  id: string;
  webhook_id: string;
  /** Null: a test. */
  event_id: string | null;
  event_type: string;
  /** What is sent, the same in every attempt. */
  body: string;
  status: string;
  /** The latest ones; JSON. */
  attempts: string;
  attempts_left: number;
  /** Null: there will be none. */
  next_attempt_at: string | null;
  claimed_by: string | null;
  claimed_until: string | null;
  created_at: string;
}
