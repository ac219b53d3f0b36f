import type { Database } from '../store/database.ts';
import { appendEvent } from '../store/events.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { endAttempt, type DeliveryAttempt, type DeliveryRecord } from '../store/webhook-deliveries.ts';
import { disableWebhook, noteAttempt, type WebhookRecord } from '../store/webhooks.ts';
import type { DeliveryOutcome } from './delivery-outcomes.ts';
import type { WebhookSettings } from './webhook-settings.ts';

const ACTOR = { kind: 'system', code: 'webhooks', label: 'Webhooks' } as const;
/** Keeps a webhook with few deliveries from being disabled for two failures that lie far apart. */
const LEAST_FAILURES = 16;
const JITTER = 0.2;
const GONE = 410;

/** Stores the outcome of an attempt, and schedules the next one or gives up. */
export async function endDelivery(
  database: Database,
  settings: WebhookSettings,
  { webhook, delivery, attempt, restMs, owner }: AttemptEnd,
): Promise<DeliveryOutcome> {
  const isTest = delivery.eventId === null;
  const hasFailed = attempt.error !== null;
  const reason = isTest ? null : reasonToDisable(webhook, attempt, settings);
  const nextAttemptAt = hasFailed ? nextAttempt(delivery, restMs, settings) : null;
  await inTransaction(database, async (transaction) => {
    // Locks the organization first, like every other change, which prevents deadlocks.
    if (reason !== null) await lockOrganization(transaction, webhook.organizationId);
    await endAttempt(transaction, delivery, owner, { attempt, nextAttemptAt });
    if (isTest) return;
    await noteAttempt(transaction, webhook.id, attempt.at, hasFailed);
    if (reason === null || !(await disableWebhook(transaction, webhook.id, reason))) return;
    await appendEvent(transaction, {
      organizationId: webhook.organizationId,
      type: 'webhook_disabled',
      category: 'webhook',
      actor: ACTOR,
      payload: { webhook_id: webhook.id, host: new URL(webhook.url).host, reason },
      requestId: null,
      sourceAddress: null,
    });
  });
  if (!hasFailed) return 'succeeded';
  return nextAttemptAt === null ? 'given_up' : 'failed';
}

interface AttemptEnd {
  /** Its state before the attempt. */
  readonly webhook: WebhookRecord;
  readonly delivery: DeliveryRecord;
  readonly attempt: DeliveryAttempt;
  /** The pause that the receiver asks for. */
  readonly restMs: number;
  /** The server that claimed the delivery. */
  readonly owner: string;
}

function nextAttempt(
  { attemptsLeft }: DeliveryRecord,
  restMs: number,
  settings: WebhookSettings,
): string | null {
  const pauseMs = pauseAfter(attemptsLeft - 1, settings);
  return pauseMs === null ? null : new Date(Date.now() + Math.max(pauseMs, restMs)).toISOString();
}

/** The pause before the next attempt when so many are left; null: there is none. */
export function pauseAfter(
  attemptsLeft: number,
  { retryMs }: Pick<WebhookSettings, 'retryMs'>,
): number | null {
  if (attemptsLeft <= 0) return null;
  const pauseMs = retryMs.at(-attemptsLeft) ?? retryMs[0] ?? 0;
  return pauseMs * (1 + JITTER * (2 * Math.random() - 1));
}

function reasonToDisable(
  { failingSince, failures, isEnabled }: WebhookRecord,
  { status, error }: DeliveryAttempt,
  { disableAfterMs }: WebhookSettings,
): string | null {
  if (!isEnabled || error === null) return null;
  if (status === GONE) return 'it answered 410: the receiver wants nothing more';
  const isLong = failingSince !== null && Date.now() - Date.parse(failingSince) >= disableAfterMs;
  return isLong && failures + 1 >= LEAST_FAILURES
    ? `every attempt failed since ${failingSince}; the latest: ${error}`
    : null;
}
