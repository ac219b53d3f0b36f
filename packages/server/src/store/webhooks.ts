import { randomUUID } from 'node:crypto';
import type { EventPattern } from '@svc/contract/rest';
import { sql, type Selectable } from 'kysely';
import type { Database } from './database.ts';
import type { WebhookRow } from './webhook-rows.ts';

export interface WebhookRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly url: string;
  readonly description: string;
  readonly eventTypes: readonly EventPattern[];
  readonly isEnabled: boolean;
  /** Why the server disabled it; null: it was not disabled by the server. */
  readonly disabledReason: string | null;
  /** Opens with `webhookContext(id)`, like the previous secret. */
  readonly sealedSecret: string;
  readonly previous: { readonly sealedSecret: string; readonly until: string } | null;
  /** Null: the latest attempt did not fail. */
  readonly failingSince: string | null;
  /** Attempts that failed in a row. */
  readonly failures: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export type WebhookSettings = Pick<WebhookRecord, 'url' | 'description' | 'eventTypes' | 'isEnabled'>;

export function webhookContext(webhookId: string): string {
  return `webhook:${webhookId}`;
}

/** Webhooks of the organization, oldest first. */
export async function listWebhooks(db: Database, organizationId: string): Promise<readonly WebhookRecord[]> {
  const rows = await db
    .selectFrom('webhooks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  return rows.map(toWebhook);
}

/** `organizationId` null: of any organization. */
export async function findWebhook(
  db: Database,
  organizationId: string | null,
  id: string,
): Promise<WebhookRecord | undefined> {
  let query = db.selectFrom('webhooks').selectAll().where('id', '=', id.toLowerCase());
  if (organizationId !== null) query = query.where('organization_id', '=', organizationId);
  const row = await query.executeTakeFirst();
  return row === undefined ? undefined : toWebhook(row);
}

/** `seal` receives the id that the secret belongs to. */
export async function insertWebhook(
  db: Database,
  organizationId: string,
  settings: WebhookSettings,
  seal: (id: string) => string,
): Promise<WebhookRecord> {
  const now = new Date().toISOString();
  const id = randomUUID();
  const row = {
    id,
    organization_id: organizationId,
    ...toColumns(settings),
    disabled_reason: null,
    secret: seal(id),
    previous_secret: null,
    previous_secret_until: null,
    failing_since: null,
    failures: 0,
    created_at: now,
    updated_at: now,
  };
  await db.insertInto('webhooks').values(row).execute();
  return toWebhook(row);
}

/** Changes a webhook, and resets its count of failures. */
export async function updateWebhook(
  db: Database,
  id: string,
  settings: WebhookSettings,
): Promise<WebhookRecord> {
  const row = await db
    .updateTable('webhooks')
    .set({
      ...toColumns(settings),
      ...(settings.isEnabled ? { disabled_reason: null } : {}),
      failing_since: null,
      failures: 0,
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toWebhook(row);
}

/** Replaces the secret. The previous one also signs until the given time; null: not any more. */
export async function rotateSecret(
  db: Database,
  { id, sealedSecret: former }: WebhookRecord,
  sealedSecret: string,
  formerUntil: string | null,
): Promise<WebhookRecord> {
  const row = await db
    .updateTable('webhooks')
    .set({
      secret: sealedSecret,
      previous_secret: formerUntil === null ? null : former,
      previous_secret_until: formerUntil,
      updated_at: new Date().toISOString(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return toWebhook(row);
}

/** Deletes previous secrets that no longer sign. */
export async function forgetFormerSecrets(db: Database): Promise<void> {
  await db
    .updateTable('webhooks')
    .set({ previous_secret: null, previous_secret_until: null })
    .where('previous_secret_until', '<', new Date().toISOString())
    .execute();
}

export async function removeWebhook(db: Database, id: string): Promise<void> {
  await db.deleteFrom('webhooks').where('id', '=', id).execute();
}

/** @returns false when it is already disabled, or gone */
export async function disableWebhook(db: Database, id: string, reason: string): Promise<boolean> {
  const row = await db
    .updateTable('webhooks')
    .set({ is_enabled: 0, disabled_reason: reason, updated_at: new Date().toISOString() })
    .where('id', '=', id)
    .where('is_enabled', '=', 1)
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Records the result of an attempt. */
export async function noteAttempt(db: Database, id: string, at: string, hasFailed: boolean): Promise<void> {
  const query = db.updateTable('webhooks').where('id', '=', id);
  if (hasFailed) {
    const failures = sql<number>`failures + 1`;
    const since = sql<string>`coalesce(failing_since, ${at})`;
    await query.set({ failures, failing_since: since }).execute();
  } else {
    // The condition avoids a write in the usual case of no change.
    await query.set({ failures: 0, failing_since: null }).where('failures', '>', 0).execute();
  }
}

function toColumns({ url, description, eventTypes, isEnabled }: WebhookSettings) {
  return { url, description, event_types: JSON.stringify(eventTypes), is_enabled: isEnabled ? 1 : 0 };
}

function toWebhook(row: Selectable<WebhookRow>): WebhookRecord {
  const { previous_secret: former, previous_secret_until: until } = row;
  return {
    id: row.id,
    organizationId: row.organization_id,
    url: row.url,
    description: row.description,
    // Written by `toColumns` only.
    eventTypes: JSON.parse(row.event_types) as readonly EventPattern[],
    isEnabled: row.is_enabled === 1,
    disabledReason: row.disabled_reason,
    sealedSecret: row.secret,
    previous: former === null || until === null ? null : { sealedSecret: former, until },
    failingSince: row.failing_since,
    failures: row.failures,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
