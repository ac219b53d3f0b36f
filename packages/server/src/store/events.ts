import { createHash, randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import type { EventKind } from '@svc/contract/rest';
import { PostgresAdapter, sql, type RawBuilder, type Selectable } from 'kysely';
import type { Database, EventRow } from './database.ts';
import { prepareStatement, type StandIns } from './prepare-statement.ts';
import { deliverEvent } from './webhook-deliveries.ts';

/** The actor of an event. The shape is public. */
export type Actor =
  | {
      readonly kind: 'user';
      readonly user_id: string;
      readonly label: string;
      readonly redacted_email: string;
    }
  | { readonly kind: 'api_key'; readonly api_key_id: string; readonly name: string }
  | { readonly kind: 'system'; readonly code: string; readonly label: string }
  | {
      readonly kind: 'ssh_key';
      readonly key_id: string;
      readonly fingerprint: string;
      readonly label: string | null;
    };

export type NewEvent = EventKind & EventOrigin;

interface EventOrigin {
  /** A UUID that the caller chooses for an event that must be logged exactly once; random by default. */
  readonly id?: string;
  readonly organizationId: string;
  readonly actor: Actor;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;
  readonly sourceAddress: string | null;
}

/**
 * Read in the same query as the head: most organizations have no webhooks, and a second query per event would be
 * wasted.
 */
const HAS_WEBHOOKS = sql<
  boolean | number
>`exists (select 1 from webhooks where webhooks.organization_id = organizations.id)`;

/**
 * Appends an event to its organization's chain. Call it in the transaction of the change that it records: it locks
 * the organization's row until the end of the transaction, so that changes and events of one organization are
 * serialized. Also queues the event for the webhooks that subscribe to it.
 */
export async function appendEvent(transaction: Database, event: NewEvent): Promise<void> {
  const {
    rows: [head],
  } = await takeNext(transaction, { organizationId: event.organizationId });
  if (head === undefined) throw new PlatformError('org_not_found', 'the organization is gone');
  const now = new Date().toISOString();
  const row = {
    id: event.id ?? randomUUID(),
    organization_id: event.organizationId,
    sequence: Number(head.event_sequence),
    category: event.category,
    event_type: event.type,
    actor: JSON.stringify(event.actor),
    payload: JSON.stringify(event.payload),
    request_id: event.requestId,
    source_address: event.sourceAddress,
    // Never earlier than the previous event, also when the clock was set back: times and sequences have the same
    // order.
    timestamp: now < head.event_timestamp ? head.event_timestamp : now,
    previous_hash: head.event_hash,
  };
  const hash = hashEvent(row);
  await insertEvent(transaction, { ...row, hash });
  if (Number(head.has_webhooks) === 1) await deliverEvent(transaction, row);
  await moveHead(transaction, { organizationId: row.organization_id, hash, timestamp: row.timestamp });
}

const takeNext = prepareStatement(
  ['organizationId'],
  (db, { organizationId }: StandIns<{ organizationId: string }>) =>
    db
      .updateTable('organizations')
      .set({ event_sequence: sql<number>`event_sequence + 1` })
      .where('id', '=', organizationId)
      .returning(['event_sequence', 'event_hash', 'event_timestamp', HAS_WEBHOOKS.as('has_webhooks')]),
);

const insertEvent = prepareStatement<Omit<Selectable<EventRow>, 'sequence'> & { readonly sequence: number }>(
  [
    'id',
    'organization_id',
    'sequence',
    'category',
    'event_type',
    'actor',
    'payload',
    'request_id',
    'source_address',
    'timestamp',
    'previous_hash',
    'hash',
  ],
  (db, row) => db.insertInto('events').values(row),
);

const moveHead = prepareStatement(
  ['organizationId', 'hash', 'timestamp'],
  (
    db,
    { organizationId, hash, timestamp }: StandIns<Record<'organizationId' | 'hash' | 'timestamp', string>>,
  ) =>
    db
      .updateTable('organizations')
      .set({ event_hash: hash, event_timestamp: timestamp })
      .where('id', '=', organizationId),
);

export async function hasEvent(db: Database, id: string): Promise<boolean> {
  const found = await db.selectFrom('events').select('id').where('id', '=', id).executeTakeFirst();
  return found !== undefined;
}

export type EventRecord = Selectable<EventRow>;

export interface EventFilter {
  readonly eventType?: string | undefined;
  /** Only events about this sandbox. */
  readonly sandboxId?: string | undefined;
  /** Earliest time, in the stored format. */
  readonly since?: string | undefined;
  /** Latest time, inclusive. */
  readonly until?: string | undefined;
}

/** Lists events newest first, starting after the one with the sequence `before`; at most `limit`. */
export async function listEvents(
  db: Database,
  organizationId: string,
  { eventType, sandboxId, since, until }: EventFilter,
  page: { readonly before: number | null; readonly limit: number },
): Promise<readonly EventRecord[]> {
  // Times increase with the sequence, so a time range is a sequence range: a page is read from one index, independent
  // of the number of events.
  const first = since === undefined ? undefined : await findSequence(db, organizationId, since, 'first');
  const last = until === undefined ? undefined : await findSequence(db, organizationId, until, 'last');
  if (first === null || last === null) return [];
  let query = db.selectFrom('events').selectAll().where('organization_id', '=', organizationId);
  if (eventType !== undefined) query = query.where('event_type', '=', eventType);
  if (sandboxId !== undefined) query = query.where(sandboxOf(db), '=', sandboxId);
  if (first !== undefined) query = query.where('sequence', '>=', first);
  if (last !== undefined) query = query.where('sequence', '<=', last);
  if (page.before !== null) query = query.where('sequence', '<', page.before);
  return await query.orderBy('sequence', 'desc').limit(page.limit).execute();
}

/** Must be spelled as in the index of migration 0019; the database does not use the index otherwise. */
function sandboxOf(db: Database): RawBuilder<string | null> {
  return db.getExecutor().adapter instanceof PostgresAdapter
    ? sql`substring(payload from '"sandbox_id":"([0-9a-f-]{36})"')`
    : sql`json_extract(payload, '$.sandbox_id')`;
}

export async function findEvent(
  db: Database,
  organizationId: string,
  id: string,
): Promise<EventRecord | undefined> {
  return await db
    .selectFrom('events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Lists events oldest first, starting after the one with the sequence `after`. */
export async function listEventsAfter(
  db: Database,
  organizationId: string,
  after: number,
  limit: number,
): Promise<readonly EventRecord[]> {
  return await db
    .selectFrom('events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('sequence', '>', after)
    .orderBy('sequence')
    .limit(limit)
    .execute();
}

/** The first event at or after the time, or the last one at or before it; null: there is none. */
async function findSequence(
  db: Database,
  organizationId: string,
  time: string,
  which: 'first' | 'last',
): Promise<number | null> {
  const order = which === 'first' ? 'asc' : 'desc';
  const row = await db
    .selectFrom('events')
    .select('sequence')
    .where('organization_id', '=', organizationId)
    .where('timestamp', which === 'first' ? '>=' : '<=', time)
    .orderBy('timestamp', order)
    .orderBy('sequence', order)
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? null : Number(row.sequence);
}

/** Hashes every column in a fixed order, as JSON, so that no two rows have the same text. */
export function hashEvent(row: Omit<Selectable<EventRow>, 'hash'>): string {
  const fields = [
    row.previous_hash,
    row.id,
    row.organization_id,
    Number(row.sequence),
    row.category,
    row.event_type,
    row.actor,
    row.payload,
    row.request_id,
    row.source_address,
    row.timestamp,
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex');
}
