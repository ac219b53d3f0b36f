import { callOptionsOf } from '../client/call-budget.ts';
import type { EventPattern } from '@svc/contract/rest';
import { Client, type ClientCallOptions } from '../client/client.ts';
import { requireKnownOptions } from '../client/known-options.ts';
import { eachItem } from '../client/pages.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** A webhook: an address to which events of the organization are posted. */
export type Webhook = RestCallOutput<'webhooks.get'>;
/** A webhook with its signing secret, which is shown once; null: the answer was lost on the way, so rotate the secret. */
export type NewWebhook = RestCallOutput<'webhooks.create'>;
/** The delivery of one event to one webhook, with every attempt. */
export type WebhookDelivery = RestCallOutput<'webhooks.test'>;

export interface WebhookChange {
  /** https, and a public address unless the operator of the server allows others. */
  readonly url?: string;
  /** A type such as `sandbox_ending`, all of a category such as `sandbox.*`, or `*`. */
  readonly eventTypes?: readonly EventPattern[];
  readonly description?: string;
  /** False: nothing is sent. */
  readonly enabled?: boolean;
}

export type CreateWebhook = WebhookChange & Required<Pick<WebhookChange, 'url' | 'eventTypes'>>;

/** The webhooks of the organization that the client acts in. */
export const Webhooks = {
  /** Oldest first. */
  async list(options: ClientCallOptions = {}): Promise<readonly Webhook[]> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('webhooks.list', {}, options);
  },

  async create(webhook: CreateWebhook, options: ClientCallOptions = {}): Promise<NewWebhook> {
    const { client = Client.ofEnvironment } = options;
    const { url, eventTypes } = webhook;
    const body = { ...toBody(webhook), url, event_types: [...eventTypes] };
    return await client.call('webhooks.create', { body }, options);
  },

  async get(id: string, options: ClientCallOptions = {}): Promise<Webhook> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('webhooks.get', { params: { webhook_id: id } }, options);
  },

  /** What is absent stays as it is. */
  async update(id: string, change: WebhookChange, options: ClientCallOptions = {}): Promise<Webhook> {
    const { client = Client.ofEnvironment } = options;
    const input = { params: { webhook_id: id }, body: toBody(change) };
    return await client.call('webhooks.update', input, options);
  },

  async remove(id: string, options: ClientCallOptions = {}): Promise<void> {
    const { client = Client.ofEnvironment } = options;
    await client.call('webhooks.remove', { params: { webhook_id: id } }, options);
  },

  /** A new secret; the one before signs too for `overlapSecs`, a day unless given. */
  async rotate(
    id: string,
    options: ClientCallOptions & { readonly overlapSecs?: number } = {},
  ): Promise<NewWebhook> {
    const call = callOptionsOf(options, { overlapSecs: true });
    const { client = Client.ofEnvironment, overlapSecs } = options;
    const body = overlapSecs === undefined ? {} : { overlap_secs: overlapSecs };
    return await client.call('webhooks.rotate', { params: { webhook_id: id }, body }, call);
  },

  /** Sends a test now; `status` and `attempts` say how it went. */
  async test(id: string, options: ClientCallOptions = {}): Promise<WebhookDelivery> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('webhooks.test', { params: { webhook_id: id } }, options);
  },

  /** Newest first; of the last 7 days. */
  deliveries(id: string, options: ClientCallOptions = {}): AsyncGenerator<WebhookDelivery, void> {
    const { client = Client.ofEnvironment } = options;
    const params = { webhook_id: id };
    return eachItem((cursor) =>
      client.call('webhooks.deliveries', { params, query: { limit: 100, ...cursor } }, options),
    );
  },

  /** Sends a delivery once more now, under its `webhook-id`. */
  async redeliver(id: string, deliveryId: string, options: ClientCallOptions = {}): Promise<WebhookDelivery> {
    const { client = Client.ofEnvironment } = options;
    const params = { webhook_id: id, delivery_id: deliveryId };
    return await client.call('webhooks.redeliver', { params }, options);
  },
} as const;

function toBody(change: WebhookChange) {
  requireKnownOptions(change, { url: true, eventTypes: true, description: true, enabled: true });
  const { url, eventTypes, description, enabled } = change;
  return {
    ...(url === undefined ? {} : { url }),
    ...(eventTypes === undefined ? {} : { event_types: [...eventTypes] }),
    ...(description === undefined ? {} : { description }),
    ...(enabled === undefined ? {} : { enabled }),
  };
}
