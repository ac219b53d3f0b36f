/** A webhook of an organization. */
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
  /** Sealed; also signs until the time in the next column. */
  previous_secret: string | null;
  previous_secret_until: string | null;
  /** Time of the first of the consecutive failures, and their number. */
  failing_since: string | null;
  failures: number;
  created_at: string;
  updated_at: string;
}

/** The delivery of one event to one webhook. */
export interface WebhookDeliveryRow {
  id: string;
  webhook_id: string;
  /** Null: a test delivery. */
  event_id: string | null;
  event_type: string;
  /** The body of the request, the same in every attempt. */
  body: string;
  status: string;
  /** The latest attempts; JSON. */
  attempts: string;
  attempts_left: number;
  /** Null: there will be no further attempt. */
  next_attempt_at: string | null;
  claimed_by: string | null;
  claimed_until: string | null;
  created_at: string;
}
