import { randomUUID } from 'node:crypto';
import { matchesEvent } from '@svc/contract/rest';
import { sql, type Selectable } from 'kysely';
import type { Database, EventRow } from './database.ts';
import { newestFirst, type PageRequest } from './page-request.ts';
import type { WebhookDeliveryRow } from './webhook-rows.ts';

/** Maximum number of attempts of a delivery: the first at once, the others with increasing back-off. */
export const MAX_ATTEMPTS = 8;
const MAX_KEPT_ATTEMPTS = 20;
const TEST_TYPE = 'webhook_test';
/** Rows per statement, so that other statements do not wait for long. */
const BATCH = 500;

export interface DeliveryAttempt {
  readonly at: string;
  readonly status: number | null;
  readonly latencyMs: number;
  /** Null: the attempt succeeded. */
  readonly error: string | null;
  readonly response: string;
}

export type DeliveryStatus = 'pending' | 'succeeded' | 'failed';

export interface DeliveryRecord {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string | null;
  readonly eventType: string;
  readonly body: string;
  readonly status: DeliveryStatus;
  readonly attempts: readonly DeliveryAttempt[];
  readonly attemptsLeft: number;
  readonly nextAttemptAt: string | null;
  readonly createdAt: string;
}

/** The owner and the duration of a lease on a delivery. */
export interface DeliveryClaim {
  readonly owner: string;
  readonly leaseMs: number;
}

/**
 * Queues an event for its webhooks, in the transaction of the event. So no event is lost when the server is killed,
 * and none is sent for a change that was rolled back. Client addresses are omitted; they stay in the audit log.
 */
export async function deliverEvent(
  transaction: Database,
  event: Pick<
    Selectable<EventRow>,
    'id' | 'organization_id' | 'sequence' | 'category' | 'event_type' | 'actor' | 'payload' | 'timestamp'
  >,
): Promise<void> {
  const kind = { type: event.event_type, category: event.category };
  const webhooks = await transaction
    .selectFrom('webhooks')
    .select(['id', 'event_types'])
    .where('organization_id', '=', event.organization_id)
    .where('is_enabled', '=', 1)
    .execute();
  // Written by this file only.
  const subscribed = webhooks.filter(({ event_types }) =>
    matchesEvent(JSON.parse(event_types) as readonly string[], kind),
  );
  if (subscribed.length === 0) return;
  const body = JSON.stringify({
    type: event.event_type,
    timestamp: event.timestamp,
    data: {
      event_id: event.id,
      org_id: event.organization_id,
      sequence: Number(event.sequence),
      category: event.category,
      actor: JSON.parse(event.actor) as unknown,
      payload: JSON.parse(event.payload) as unknown,
    },
  });
  const shared = { event_id: event.id, event_type: event.event_type, body };
  await transaction
    .insertInto('webhook_deliveries')
    .values(subscribed.map(({ id }) => newRow(id, shared, MAX_ATTEMPTS)))
    .execute();
}

/** Inserts a test delivery with one attempt, claimed by the caller. */
export async function insertTest(
  db: Database,
  webhookId: string,
  claim: DeliveryClaim,
): Promise<DeliveryRecord> {
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({ type: TEST_TYPE, timestamp, data: { webhook_id: webhookId } });
  const row = newRow(webhookId, { event_id: null, event_type: TEST_TYPE, body }, 1);
  const claimed = { ...row, claimed_by: claim.owner, claimed_until: leaseEnd(claim) };
  await db.insertInto('webhook_deliveries').values(claimed).execute();
  return toDelivery(claimed);
}

/** Claims a delivery for another attempt. @returns undefined while another server has claimed it */
export async function claimAgain(
  db: Database,
  { id, attemptsLeft }: DeliveryRecord,
  claim: DeliveryClaim,
): Promise<DeliveryRecord | undefined> {
  const now = new Date().toISOString();
  const row = await db
    .updateTable('webhook_deliveries')
    .set({
      status: 'pending',
      attempts_left: Math.max(attemptsLeft, 1),
      next_attempt_at: now,
      claimed_by: claim.owner,
      claimed_until: leaseEnd(claim),
    })
    .where('id', '=', id)
    .where((build) => build.or([build('claimed_until', 'is', null), build('claimed_until', '<', now)]))
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toDelivery(row);
}

export interface DueWebhook {
  readonly id: string;
  readonly organizationId: string;
}

/** Enabled webhooks with due deliveries that no server has claimed. */
export async function listDueWebhooks(db: Database): Promise<readonly DueWebhook[]> {
  const now = new Date().toISOString();
  return await db
    .selectFrom('webhooks')
    .select(['webhooks.id', 'webhooks.organization_id as organizationId'])
    .where('is_enabled', '=', 1)
    .where((build) =>
      build.exists(
        build
          .selectFrom('webhook_deliveries')
          .select('webhook_deliveries.id')
          .whereRef('webhook_deliveries.webhook_id', '=', 'webhooks.id')
          // A literal as in the index: a parameter would not match it.
          .where('status', '=', sql.lit('pending'))
          .where('next_attempt_at', '<=', now)
          .where((inner) => inner.or([inner('claimed_until', 'is', null), inner('claimed_until', '<', now)])),
      ),
    )
    .execute();
}

/** Claims the delivery that is due for longest among those that no server has claimed; undefined when there is none. */
export async function claimDelivery(
  db: Database,
  webhookId: string,
  claim: DeliveryClaim,
): Promise<DeliveryRecord | undefined> {
  const now = new Date().toISOString();
  const free = await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where('status', '=', sql.lit('pending'))
    .where('next_attempt_at', '<=', now)
    .where((build) => build.or([build('claimed_until', 'is', null), build('claimed_until', '<', now)]))
    .orderBy('next_attempt_at')
    .limit(1)
    .executeTakeFirst();
  if (free === undefined) return undefined;
  const row = await db
    .updateTable('webhook_deliveries')
    .set({ claimed_by: claim.owner, claimed_until: leaseEnd(claim) })
    .where('id', '=', free.id)
    .where('status', '=', 'pending')
    // Another server may have claimed it, or even finished this attempt, meanwhile.
    .where('next_attempt_at', '<=', now)
    .where((build) => build.or([build('claimed_until', 'is', null), build('claimed_until', '<', now)]))
    .returningAll()
    .executeTakeFirst();
  return row === undefined ? undefined : toDelivery(row);
}

/**
 * Records an attempt of a delivery that `owner` has claimed, and when the next one is due; null: it succeeded, or
 * there are no more.
 */
export async function endAttempt(
  db: Database,
  { id, attempts, attemptsLeft }: DeliveryRecord,
  owner: string,
  { attempt, nextAttemptAt }: { readonly attempt: DeliveryAttempt; readonly nextAttemptAt: string | null },
): Promise<void> {
  const hasFailed = attempt.error !== null;
  await db
    .updateTable('webhook_deliveries')
    .set({
      status: !hasFailed ? 'succeeded' : nextAttemptAt === null ? 'failed' : 'pending',
      attempts: JSON.stringify([...attempts, attempt].slice(-MAX_KEPT_ATTEMPTS)),
      attempts_left: hasFailed ? attemptsLeft - 1 : 0,
      next_attempt_at: nextAttemptAt,
      claimed_by: null,
      claimed_until: null,
    })
    .where('id', '=', id)
    // An owner whose lease expired must not record its result: another server repeats the attempt.
    .where('claimed_by', '=', owner)
    .execute();
}

/** Number of pending deliveries of all organizations. */
export async function countPending(db: Database): Promise<number> {
  const { count } = await db
    .selectFrom('webhook_deliveries')
    .select((build) => build.fn.countAll<number | string>().as('count'))
    .where('status', '=', sql.lit('pending'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Drops the oldest pending deliveries of each webhook beyond `most`, with an attempt that says so. @returns how many,
 * by webhook
 */
export async function dropBacklog(
  db: Database,
  most: number,
): Promise<readonly { readonly webhookId: string; readonly count: number }[]> {
  const crowded = await db
    .selectFrom('webhook_deliveries')
    .select((build) => ['webhook_id as webhookId', build.fn.countAll<number | string>().as('waiting')])
    .where('status', '=', sql.lit('pending'))
    .groupBy('webhook_id')
    .having((build) => build.fn.countAll(), '>', most)
    .execute();
  const dropped: { webhookId: string; count: number }[] = [];
  for (const { webhookId, waiting } of crowded) {
    const count = await dropOldest(db, webhookId, Number(waiting) - most, most);
    if (count > 0) dropped.push({ webhookId, count });
  }
  return dropped;
}

async function dropOldest(db: Database, webhookId: string, excess: number, most: number): Promise<number> {
  const error = `dropped: more than ${most} messages were waiting, and this was one of the oldest`;
  let dropped = 0;
  for (let isMore = true; isMore && dropped < excess;) {
    const rows = await db
      .selectFrom('webhook_deliveries')
      .select(['id', 'attempts'])
      .where('webhook_id', '=', webhookId)
      .where('status', '=', sql.lit('pending'))
      .where('claimed_by', 'is', null)
      .orderBy('created_at')
      .orderBy('id')
      .limit(Math.min(excess - dropped, BATCH))
      .execute();
    for (const { id, attempts } of rows) {
      const attempt = { at: new Date().toISOString(), status: null, latencyMs: 0, error, response: '' };
      // Written by this file only.
      const kept = [...(JSON.parse(attempts) as DeliveryAttempt[]), attempt].slice(-MAX_KEPT_ATTEMPTS);
      const { numUpdatedRows } = await db
        .updateTable('webhook_deliveries')
        .set({ status: 'failed', attempts: JSON.stringify(kept), attempts_left: 0, next_attempt_at: null })
        .where('id', '=', id)
        .where('status', '=', 'pending')
        .where('claimed_by', 'is', null)
        .executeTakeFirst();
      dropped += Number(numUpdatedRows);
    }
    isMore = rows.length === BATCH;
  }
  return dropped;
}

/** Releases the claim, so that any server can take the delivery at once. */
export async function releaseDelivery(db: Database, id: string, owner: string): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({ claimed_by: null, claimed_until: null })
    .where('id', '=', id)
    .where('claimed_by', '=', owner)
    .execute();
}

/** Releases the claims of a killed server. Only for a server that has the store for itself. */
export async function releaseAllDeliveries(db: Database): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({ claimed_by: null, claimed_until: null })
    .where('status', '=', sql.lit('pending'))
    .where('claimed_by', 'is not', null)
    .execute();
}

export async function findDelivery(
  db: Database,
  webhookId: string,
  id: string,
): Promise<DeliveryRecord | undefined> {
  const row = await db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('id', '=', id.toLowerCase())
    .executeTakeFirst();
  return row === undefined ? undefined : toDelivery(row);
}

/** Lists deliveries newest first; one more than the page holds when there is another. */
export async function listDeliveries(
  db: Database,
  webhookId: string,
  page: PageRequest,
): Promise<readonly DeliveryRecord[]> {
  const query = db.selectFrom('webhook_deliveries').selectAll().where('webhook_id', '=', webhookId);
  const rows = await newestFirst(query, ['created_at', 'id'], page).execute();
  return rows.map(toDelivery);
}

/** Removes deliveries from before a time, and those of removed webhooks. */
export async function pruneDeliveries(db: Database, before: string, signal: AbortSignal): Promise<void> {
  const rows = db.selectFrom('webhook_deliveries').select('id').limit(BATCH);
  const old = rows.where('created_at', '<', before);
  const orphaned = rows.where('webhook_id', 'not in', db.selectFrom('webhooks').select('id'));
  for (const query of [old, orphaned]) {
    for (let isMore = true; isMore && !signal.aborted;) {
      const ids = (await query.execute()).map(({ id }) => id);
      if (ids.length > 0) await db.deleteFrom('webhook_deliveries').where('id', 'in', ids).execute();
      isMore = ids.length === BATCH;
    }
  }
}

function newRow(
  webhookId: string,
  message: Pick<WebhookDeliveryRow, 'event_id' | 'event_type' | 'body'>,
  attemptsLeft: number,
): WebhookDeliveryRow {
  const now = new Date().toISOString();
  return {
    id: randomUUID(),
    webhook_id: webhookId,
    ...message,
    status: 'pending',
    attempts: '[]',
    attempts_left: attemptsLeft,
    next_attempt_at: now,
    claimed_by: null,
    claimed_until: null,
    created_at: now,
  };
}

function leaseEnd({ leaseMs }: DeliveryClaim): string {
  return new Date(Date.now() + leaseMs).toISOString();
}

function toDelivery(row: Selectable<WebhookDeliveryRow>): DeliveryRecord {
  return {
    id: row.id,
    webhookId: row.webhook_id,
    eventId: row.event_id,
    eventType: row.event_type,
    body: row.body,
    // Written by the functions above only, like the attempts.
    status: row.status as DeliveryStatus,
    attempts: JSON.parse(row.attempts) as readonly DeliveryAttempt[],
    attemptsLeft: row.attempts_left,
    nextAttemptAt: row.next_attempt_at,
    createdAt: row.created_at,
  };
}
