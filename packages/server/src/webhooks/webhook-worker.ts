import { randomUUID } from 'node:crypto';
import { pause } from '@svc/contract/node-pause';
import type { Logger } from 'pino';
import type { OutboundRules } from '../outbound/send-outbound.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { Database } from '../store/database.ts';
import {
  claimDelivery,
  dropBacklog,
  listDueWebhooks,
  releaseDelivery,
  type DeliveryClaim,
  type DeliveryRecord,
  type DueWebhook,
} from '../store/webhook-deliveries.ts';
import { findWebhook } from '../store/webhooks.ts';
import { DeliveryOutcomes } from './delivery-outcomes.ts';
import { hasRoom } from './delivery-shares.ts';
import { endDelivery } from './end-delivery.ts';
import { sendDelivery } from './send-delivery.ts';
import type { WebhookSettings } from './webhook-settings.ts';

/** Added to the timeout of an attempt: a claim that is older belongs to a server that died. */
const LEASE_SLACK_MS = 30_000;
export interface WebhookWorkerParts {
  readonly database: Database;
  readonly sealer: Sealer;
  readonly outbound: OutboundRules;
  readonly settings: WebhookSettings;
  readonly logger: Logger;
}

/**
 * Sends the deliveries of events. A delivery is claimed before it is sent, so that several servers may work on one store; deliveries of
 * a server that died are sent again after its lease, under the same id.
 */
export class WebhookWorker {
  readonly claim: DeliveryClaim;
  readonly outcomes = new DeliveryOutcomes();
  readonly #parts: WebhookWorkerParts;
  readonly #underWay = new Map<Promise<void>, DueWebhook>();
  readonly #stopped = new AbortController();
  #wake = Promise.withResolvers<void>();
  #nextTrimMs = 0;

  constructor(parts: WebhookWorkerParts) {
    this.#parts = parts;
    this.claim = { owner: randomUUID(), leaseMs: parts.settings.timeoutMs + LEASE_SLACK_MS };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { settings, logger } = this.#parts;
    signal.addEventListener('abort', () => this.#stopped.abort(signal.reason), { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      try {
        await this.#trim();
        await this.#sendDue();
      } catch (error) {
        if (!signal.aborted)
          logger.error({ err: error }, 'webhooks could not be delivered; it is tried again');
      }
      await Promise.race([this.#wake.promise, pause(settings.pollMs, signal)]);
    }
    await Promise.all(this.#underWay.keys());
  }

  /** Makes one attempt now, for a delivery that was claimed with `claim`. */
  async attempt(delivery: DeliveryRecord): Promise<void> {
    const { database, settings, outbound, sealer } = this.#parts;
    try {
      const webhook = await findWebhook(database, null, delivery.webhookId);
      // The webhook was removed since.
      if (webhook === undefined) return;
      const { timeoutMs } = settings;
      const sent = await sendDelivery(
        { sealer, outbound, timeoutMs },
        webhook,
        delivery,
        this.#stopped.signal,
      );
      const end = { webhook, delivery, ...sent, owner: this.claim.owner };
      this.outcomes.add(await endDelivery(database, settings, end));
    } catch (error) {
      // A fault of this server or the store is likely to persist, so the delivery stays claimed until the lease expires, and the receiver
      // does not get it in a loop. A server that stops releases it at once.
      if (this.#stopped.signal.aborted) await releaseDelivery(database, delivery.id, this.claim.owner);
      throw error;
    }
  }

  /** Bounds the backlog of receivers that accept too few deliveries. */
  async #trim(): Promise<void> {
    if (performance.now() < this.#nextTrimMs) return;
    const { database, settings, logger } = this.#parts;
    this.#nextTrimMs = performance.now() + settings.trimMs;
    for (const { webhookId, count } of await dropBacklog(database, settings.maxBacklog)) {
      this.outcomes.add('dropped', count);
      logger.warn(
        { webhookId, count, maxBacklog: settings.maxBacklog },
        'messages of a webhook were dropped',
      );
    }
  }

  /** Sends one delivery of each webhook in turn, while there are due ones and free places. */
  async #sendDue(): Promise<void> {
    let due = await listDueWebhooks(this.#parts.database);
    while (due.length > 0 && !this.#stopped.signal.aborted) {
      const more: DueWebhook[] = [];
      for (const webhook of due) {
        if (!hasRoom([...this.#underWay.values()], webhook)) continue;
        const delivery = await claimDelivery(this.#parts.database, webhook.id, this.claim);
        if (delivery === undefined) continue;
        this.#begin(webhook, delivery);
        more.push(webhook);
      }
      due = more;
    }
  }

  #begin(webhook: DueWebhook, delivery: DeliveryRecord): void {
    const { logger } = this.#parts;
    const work = this.attempt(delivery)
      .catch((error: unknown) => {
        if (!this.#stopped.signal.aborted)
          logger.error({ err: error, deliveryId: delivery.id }, 'a webhook could not be delivered');
      })
      .finally(() => {
        this.#underWay.delete(work);
        this.#wake.resolve();
      });
    this.#underWay.set(work, webhook);
  }
}
