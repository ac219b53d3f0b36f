import type { Database } from '../store/database.ts';
import { appendEvent } from '../store/events.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { lockOrganization } from '../store/lock-organization.ts';
import { endAttempt, type DeliveryAttempt, type DeliveryRecord } from '../store/webhook-deliveries.ts';
import { disableWebhook, noteAttempt, type WebhookRecord } from '../store/webhooks.ts';
import type { DeliveryOutcome } from './delivery-outcomes.ts';
import type { WebhookSettings } from './webhook-settings.ts';

const ACTOR = { kind: 'system', code: 'webhooks', label: 'Webhooks' } as const;
/** A webhook that is seldom sent something is not disabled for two failures that lie far apart. */
const LEAST_FAILURES = 16;
const JITTER = 0.2;
const GONE = 410;

/** Writes down how an attempt went, and what follows from it. */
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
    // First of all, as everywhere, so that no two changes wait for each other.
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
  /** As it was before the attempt. */
  readonly webhook: WebhookRecord;
  readonly delivery: DeliveryRecord;
  readonly attempt: DeliveryAttempt;
  /** For how long the receiver wants to be left alone. */
  readonly restMs: number;
  /** Who claimed the delivery. */
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

/** How long to wait when so many attempts are left; null: there is none. */
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
