import { PlatformError } from '@svc/contract';
import type { RestOperations, RestOutput } from '@svc/contract/rest';
import { readPage, toPage } from '../../dispatch/paging.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { flawOfTarget, type OutboundRules } from '../../outbound/send-outbound.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import type { Database } from '../../store/database.ts';
import {
  findWebhook,
  insertWebhook,
  listWebhooks,
  removeWebhook,
  rotateSecret,
  updateWebhook,
  webhookContext,
  type WebhookRecord,
} from '../../store/webhooks.ts';
import { listDeliveries } from '../../store/webhook-deliveries.ts';
import { newWebhookSecret } from '../../webhooks/sign-message.ts';
import type { WebhookWorker } from '../../webhooks/webhook-worker.ts';
import { redeliver, sendTest, viewDelivery } from './send-now.ts';

const MAX_WEBHOOKS = 16;
const DEFAULT_OVERLAP_SECS = 24 * 60 * 60;
const LIST = 'webhook_deliveries';

export interface WebhookParts {
  readonly database: Database;
  readonly sealer: Sealer;
  readonly outbound: OutboundRules;
  readonly webhookWorker: WebhookWorker;
}

type WebhookHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `webhooks.${string}`>>;

/** Secrets are returned once, when they are made. The audit log has only the host of an address, because the rest may be a secret too. */
export function webhookHandlers(parts: WebhookParts): WebhookHandlers {
  const { database } = parts;
  return {
    'webhooks.list': async (_input, { organization }) =>
      (await listWebhooks(database, organization.id)).map(viewWebhook),
    'webhooks.get': async ({ params }, call) =>
      viewWebhook(await requireWebhook(database, call, params.webhook_id)),
    'webhooks.create': async ({ body }, call) => await create(parts, body, call),
    'webhooks.update': async ({ params, body }, call) => {
      if (body.url !== undefined) requireTarget(parts, body.url);
      const updated = await call.commit(async ({ db, record }) => {
        const { id, ...former } = await requireWebhook(db, call, params.webhook_id);
        const webhook = await updateWebhook(db, id, {
          url: body.url ?? former.url,
          description: body.description ?? former.description,
          eventTypes: body.event_types ?? former.eventTypes,
          isEnabled: body.enabled ?? former.isEnabled,
        });
        const payload = { ...describe(webhook), changed: Object.keys(body).toSorted() };
        await record({ type: 'webhook_updated', category: 'webhook', payload });
        return webhook;
      }, viewWebhook);
      return viewWebhook(updated);
    },
    'webhooks.remove': async ({ params }, call) => {
      const answer = () => ({ message: 'The webhook is removed' });
      await call.commit(async ({ db, record }) => {
        const webhook = await requireWebhook(db, call, params.webhook_id);
        await removeWebhook(db, webhook.id);
        await record({ type: 'webhook_deleted', category: 'webhook', payload: describe(webhook) });
      }, answer);
      return answer();
    },
    'webhooks.rotate': async ({ params, body }, call) => {
      const overlapSecs = body.overlap_secs ?? DEFAULT_OVERLAP_SECS;
      return await rotate(parts, call, params.webhook_id, overlapSecs);
    },
    'webhooks.test': async ({ params }, call) => {
      const find = (db: Database) => requireWebhook(db, call, params.webhook_id);
      return await sendTest(parts, call, find);
    },
    'webhooks.deliveries': async ({ params, query }, call) => {
      const { id } = await requireWebhook(database, call, params.webhook_id);
      const page = readPage(query, LIST, 2);
      const rows = await listDeliveries(database, id, page);
      return toPage(rows, page, LIST, (row) => [row.createdAt, row.id], viewDelivery);
    },
    'webhooks.redeliver': async ({ params }, call) => {
      const find = (db: Database) => requireWebhook(db, call, params.webhook_id);
      return await redeliver(parts, call, find, params.delivery_id);
    },
  };
}

type NewWebhook = Parameters<RestHandlers['webhooks.create']>[0]['body'];

async function create(parts: WebhookParts, body: NewWebhook, call: RestCall) {
  const { organization } = call;
  requireTarget(parts, body.url);
  const secret = newWebhookSecret();
  return await call.commit(
    async ({ db, record }) => {
      const all = await listWebhooks(db, organization.id);
      if (all.length >= MAX_WEBHOOKS) throw tooMany();
      const settings = {
        url: body.url,
        description: body.description ?? '',
        eventTypes: body.event_types,
        isEnabled: body.enabled ?? true,
      };
      const webhook = await insertWebhook(db, organization.id, settings, (id) =>
        parts.sealer.seal(secret, webhookContext(id)),
      );
      const payload = { ...describe(webhook), event_types: webhook.eventTypes };
      await record({ type: 'webhook_created', category: 'webhook', payload });
      return { ...viewWebhook(webhook), secret };
    },
    (view) => view,
  );
}

async function rotate({ sealer }: WebhookParts, call: RestCall, webhookId: string, overlapSecs: number) {
  const secret = newWebhookSecret();
  return await call.commit(
    async ({ db, record }) => {
      const webhook = await requireWebhook(db, call, webhookId);
      const until = overlapSecs === 0 ? null : new Date(Date.now() + overlapSecs * 1000).toISOString();
      const sealed = sealer.seal(secret, webhookContext(webhook.id));
      const rotated = await rotateSecret(db, webhook, sealed, until);
      const payload = { ...describe(webhook), previous_secret_until: until };
      await record({ type: 'webhook_secret_rotated', category: 'webhook', payload });
      return { ...viewWebhook(rotated), secret };
    },
    (view) => view,
  );
}

async function requireWebhook(db: Database, call: RestCall, id: string): Promise<WebhookRecord> {
  const webhook = await findWebhook(db, call.organization.id, id);
  if (webhook !== undefined) return webhook;
  throw new PlatformError('not_found', `There is no webhook ${id}; svc webhook ls shows those that exist`);
}

function requireTarget({ outbound }: WebhookParts, url: string): void {
  if (!URL.canParse(url)) throw badField('url', 'must be an address');
  const flaw = flawOfTarget(new URL(url), outbound);
  if (flaw !== null) throw badField('url', flaw);
}

function describe({ id, url }: WebhookRecord) {
  return { webhook_id: id, host: new URL(url).host };
}

function viewWebhook(webhook: WebhookRecord): RestOutput<RestOperations['webhooks.get']> {
  const { previous } = webhook;
  return {
    id: webhook.id,
    url: webhook.url,
    description: webhook.description,
    event_types: [...webhook.eventTypes],
    enabled: webhook.isEnabled,
    disabled_reason: webhook.disabledReason,
    failing_since: webhook.failingSince,
    previous_secret_until:
      previous !== null && new Date().toISOString() < previous.until ? previous.until : null,
    created_at: webhook.createdAt,
    updated_at: webhook.updatedAt,
  };
}

function tooMany(): PlatformError {
  const message = `The organization has ${MAX_WEBHOOKS} webhooks, which is the most; remove one first`;
  return new PlatformError('quota_exceeded', message, { details: { maximum: MAX_WEBHOOKS } });
}
