import { callOptionsOf } from '../client/call-budget.ts';
import { Client, type ClientCallOptions } from '../client/client.ts';
import { eachItem } from '../client/pages.ts';
import type { RestCallOutput } from '../client/rest-call.ts';

/** An audit event of the organization; each names the hash of the one before. */
export type AuditEvent = RestCallOutput<'events.get'>;

export interface ListEventsOptions extends ClientCallOptions {
  /** Such as `sandbox_created` or `exec_started`. */
  readonly type?: string;
  /** The id of the one that they are about. */
  readonly sandboxId?: string;
  /** RFC 3339, included. */
  readonly since?: string;
  readonly until?: string;
}

/** The audit log of the organization. */
export const Events = {
  /** Newest first. */
  list(options: ListEventsOptions = {}): AsyncGenerator<AuditEvent, void> {
    const call = callOptionsOf(options, { type: true, sandboxId: true, since: true, until: true });
    const { client = Client.ofEnvironment, type, sandboxId, since, until } = options;
    const query = {
      limit: 100,
      ...(type === undefined ? {} : { event_type: type }),
      ...(sandboxId === undefined ? {} : { sandbox_id: sandboxId }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
    };
    return eachItem((cursor) => client.call('events.list', { query: { ...query, ...cursor } }, call));
  },

  /** @throws SvcError `event_not_found` */
  async get(id: string, options: ClientCallOptions = {}): Promise<AuditEvent> {
    const { client = Client.ofEnvironment } = options;
    return await client.call('events.get', { params: { event_id: id } }, options);
  },
} as const;
