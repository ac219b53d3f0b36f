import { PlatformError } from '@svc/contract';
import type { RestOperations, RestOutput } from '@svc/contract/rest';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { findEvent, listEvents, type Actor, type EventRecord } from '../../store/events.ts';
import type { Position } from '../../store/page-request.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import { readTime } from '../../dispatch/read-time.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';

const LIST = 'events';

export function eventHandlers(database: Database): Pick<RestHandlers, 'events.list' | 'events.get'> {
  return {
    'events.list': async ({ query }, { organization }) => {
      const page = readPage(query, LIST, 1);
      const before = page.after === null ? null : sequenceOf(page.after);
      const limit = page.limit + 1;
      const rows = await listEvents(database, organization.id, readFilter(query), { before, limit });
      return toPage(rows, page, LIST, ({ sequence }) => [Number(sequence)], describe);
    },
    'events.get': async ({ params }, { organization }) => {
      const event = await findEvent(database, organization.id, params.event_id.toLowerCase());
      if (event !== undefined) return describe(event);
      throw new PlatformError('event_not_found', `There is no event ${params.event_id}`, {
        details: { event_id: params.event_id },
      });
    },
  };
}

function sequenceOf([sequence]: Position): number {
  if (typeof sequence === 'number') return sequence;
  throw new PlatformError('invalid_cursor', 'cursor is not one of this list; start again without it', {
    details: { field: 'cursor' },
  });
}

interface EventQuery {
  readonly event_type?: string;
  readonly sandbox_id?: string;
  readonly since?: string;
  readonly until?: string;
}

function readFilter({ event_type: eventType, sandbox_id, since, until }: EventQuery) {
  const sinceMs = since === undefined ? undefined : readTime('since', since);
  const untilMs = until === undefined ? undefined : readTime('until', until);
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs > untilMs) {
    throw badField('since', 'must not lie after `until`');
  }
  return {
    eventType,
    sandboxId: sandbox_id?.toLowerCase(),
    since: toStored(sinceMs),
    until: toStored(untilMs),
  };
}

function toStored(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();
}

/** Actor and payload are the JSON that was written. */
function describe(row: EventRecord): RestOutput<RestOperations['events.get']> {
  return {
    id: row.id,
    org_id: row.organization_id,
    sequence: Number(row.sequence),
    category: row.category,
    event_type: row.event_type,
    actor: JSON.parse(row.actor) as Actor,
    payload: JSON.parse(row.payload) as unknown,
    request_id: row.request_id,
    source_address: row.source_address,
    timestamp: row.timestamp,
    previous_hash: row.previous_hash,
    hash: row.hash,
  };
}
