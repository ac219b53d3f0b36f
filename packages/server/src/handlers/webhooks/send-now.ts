import { PlatformError } from '@svc/contract';
import type { RestOperations, RestOutput } from '@svc/contract/rest';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { Database } from '../../store/database.ts';
import { claimAgain, findDelivery, insertTest, type DeliveryRecord } from '../../store/webhook-deliveries.ts';
import type { WebhookRecord } from '../../store/webhooks.ts';
import { messageIdOf } from '../../webhooks/send-delivery.ts';
import type { WebhookWorker } from '../../webhooks/webhook-worker.ts';

interface SendParts {
  readonly database: Database;
  readonly webhookWorker: WebhookWorker;
}

type Find = (db: Database) => Promise<WebhookRecord>;
type DeliveryView = RestOutput<RestOperations['webhooks.test']>;

/** Works for a disabled webhook too, so that it can be tried before it is enabled. */
export async function sendTest(parts: SendParts, call: RestCall, find: Find): Promise<DeliveryView> {
  const delivery = await call.commit(async ({ db, record }) => {
    const { id, url } = await find(db);
    const payload = { webhook_id: id, host: new URL(url).host };
    await record({ type: 'webhook_tested', category: 'webhook', payload });
    return await insertTest(db, id, parts.webhookWorker.claim);
  }, viewDelivery);
  return await sendNow(parts, delivery);
}

export async function redeliver(
  parts: SendParts,
  call: RestCall,
  find: Find,
  deliveryId: string,
): Promise<DeliveryView> {
  const delivery = await call.commit(async ({ db, record }) => {
    const { id, url } = await find(db);
    const found = await findDelivery(db, id, deliveryId);
    if (found === undefined) throw new PlatformError('not_found', `There is no delivery ${deliveryId}`);
    const claimed = await claimAgain(db, found, parts.webhookWorker.claim);
    if (claimed === undefined)
      throw new PlatformError('invalid_state_transition', 'The delivery is being sent at this moment');
    const payload = { webhook_id: id, host: new URL(url).host, delivery_id: found.id };
    await record({ type: 'webhook_redelivered', category: 'webhook', payload });
    return claimed;
  }, viewDelivery);
  return await sendNow(parts, delivery);
}

async function sendNow(
  { database, webhookWorker }: SendParts,
  delivery: DeliveryRecord,
): Promise<DeliveryView> {
  await webhookWorker.attempt(delivery);
  return viewDelivery((await findDelivery(database, delivery.webhookId, delivery.id)) ?? delivery);
}

export function viewDelivery(delivery: DeliveryRecord): DeliveryView {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    message_id: messageIdOf(delivery.id),
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    status: delivery.status,
    attempts: delivery.attempts.map(({ latencyMs, ...attempt }) => ({ ...attempt, latency_ms: latencyMs })),
    next_attempt_at: delivery.nextAttemptAt,
    created_at: delivery.createdAt,
  };
}
