import { randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { CodeContextRow } from './code-context-rows.ts';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';

/** A server that has not extended its lease for this time is considered dead. */
const LEASE_MS = 60_000;

export interface ContextRecord {
  readonly id: string;
  readonly sandboxId: string;
  readonly runId: string;
  readonly name: string | null;
  readonly language: string;
  readonly cwd: string | null;
  /** Opens with `contextEnvContext(id)`. */
  readonly sealedEnv: string | null;
  readonly createdAt: string;
}

/** The sealing context of a context's variables. */
export function contextEnvContext(contextId: string): string {
  return `code context:${contextId}`;
}

/**
 * Adds a context unless the run is at its limit or has a context of this name. Deletes contexts of earlier runs of
 * the sandbox. `ended`: the run is over.
 */
export async function insertContext(
  db: Database,
  record: ContextRecord,
  maximum: number,
): Promise<'added' | 'ended' | 'too many' | 'name taken'> {
  return await inTransaction(db, async (transaction) => {
    // Locks the run, so that two concurrent inserts do not count the same contexts.
    const run = await transaction
      .updateTable('runs')
      .set({ id: record.runId })
      .where('id', '=', record.runId)
      .where('ended_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    if (run === undefined) return 'ended';
    await transaction
      .deleteFrom('code_contexts')
      .where('sandbox_id', '=', record.sandboxId)
      .where('run_id', '<>', record.runId)
      .execute();
    const known = await listContexts(transaction, record.runId);
    if (known.length >= maximum) return 'too many';
    if (record.name !== null && known.some(({ name }) => name === record.name)) return 'name taken';
    const { sandboxId, runId, sealedEnv, createdAt, ...same } = record;
    const more = { sandbox_id: sandboxId, run_id: runId, env: sealedEnv, created_at: createdAt };
    await transaction
      .insertInto('code_contexts')
      .values({ ...same, ...more })
      .execute();
    return 'added';
  });
}

/** Oldest first. */
export async function listContexts(db: Database, runId: string): Promise<readonly ContextRecord[]> {
  const query = db.selectFrom('code_contexts').selectAll().where('run_id', '=', runId);
  return (await query.orderBy('created_at').orderBy('id').execute()).map(toContext);
}

/** Finds a context by id or name; a match by id takes precedence. */
export async function findContext(
  db: Database,
  runId: string,
  idOrName: string,
): Promise<ContextRecord | undefined> {
  const rows = await db
    .selectFrom('code_contexts')
    .selectAll()
    .where('run_id', '=', runId)
    .where((build) => build.or([build('id', '=', idOrName), build('name', '=', idOrName)]))
    .execute();
  const row = rows.find(({ id }) => id === idOrName) ?? rows[0];
  return row === undefined ? undefined : toContext(row);
}

export async function removeContext(db: Database, id: string): Promise<void> {
  await db.deleteFrom('code_contexts').where('id', '=', id).execute();
}

export async function forgetContextsOfEnded(db: Database): Promise<void> {
  await db
    .deleteFrom('code_contexts')
    .where('run_id', 'in', (ended) => ended.selectFrom('runs').select('id').where('ended_at', 'is not', null))
    .execute();
}

/**
 * Records a lease for code that runs in the context or queues for it.
 * @returns the id of the lease; undefined when the context is gone
 */
export async function beginCodeLease(db: Database, contextId: string): Promise<string | undefined> {
  const now = Date.now();
  const expired = db.deleteFrom('code_turns').where('context_id', '=', contextId);
  await expired.where('leased_until', '<', at(now)).execute();
  const row = await db
    .insertInto('code_turns')
    .columns(['id', 'context_id', 'leased_until', 'is_interrupted'])
    .expression((build) =>
      build
        .selectFrom('code_contexts')
        .select((select) => [
          select.val(randomUUID()).as('id'),
          'code_contexts.id as context_id',
          select.val(at(now + LEASE_MS)).as('leased_until'),
          select.val(0).as('is_interrupted'),
        ])
        .where('code_contexts.id', '=', contextId),
    )
    .returning('id')
    .executeTakeFirst();
  return row?.id;
}

export async function extendCodeLease(db: Database, id: string): Promise<void> {
  const change = { leased_until: at(Date.now() + LEASE_MS) };
  await db.updateTable('code_turns').set(change).where('id', '=', id).execute();
}

export async function endCodeLease(db: Database, id: string): Promise<void> {
  await db.deleteFrom('code_turns').where('id', '=', id).execute();
}

/**
 * Marks all code that runs in the context as interrupted; the servers that run it poll for this.
 * @returns whether any code was running
 */
export async function interruptCode(db: Database, contextId: string): Promise<boolean> {
  const leases = db.updateTable('code_turns').set({ is_interrupted: 1 }).where('context_id', '=', contextId);
  const row = await leases.where('leased_until', '>=', at(Date.now())).returning('id').execute();
  return row.length > 0;
}

export async function isCodeInterrupted(db: Database, id: string): Promise<boolean> {
  const query = db.selectFrom('code_turns').select('is_interrupted').where('id', '=', id);
  return (await query.executeTakeFirst())?.is_interrupted === 1;
}

/** The contexts of a run in which code runs or is queued. */
export async function listBusy(db: Database, runId: string): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('code_turns')
    .innerJoin('code_contexts', 'code_contexts.id', 'code_turns.context_id')
    .select('code_turns.context_id')
    .where('code_contexts.run_id', '=', runId)
    .where('code_turns.leased_until', '>=', at(Date.now()))
    .execute();
  return new Set(rows.map((row) => row.context_id));
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}

function toContext(row: Selectable<CodeContextRow>): ContextRecord {
  const { sandbox_id: sandboxId, run_id: runId, env: sealedEnv, created_at: createdAt, ...same } = row;
  return { ...same, sandboxId, runId, sealedEnv, createdAt };
}
