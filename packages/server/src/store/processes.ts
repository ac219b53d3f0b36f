import type { ProcessEndReason } from '@svc/contract/rest';
import type { Selectable } from 'kysely';
import { newestFirst, type PageRequest } from './page-request.ts';
import type { Database, ProcessRow, RunRow } from './database.ts';
import { prepareLookup } from './prepare-lookup.ts';

/** How a process ended. */
export interface ProcessExit {
  /** Null when a signal ended the process, or its exit was not observed. */
  readonly code: number | null;
  /** For example SIGTERM. */
  readonly signal: string | null;
  readonly reason: ProcessEndReason;
  readonly killedBy: string | null;
  readonly message: string;
}

export interface ProcessRecord {
  /** Also identifies the process inside the sandbox. */
  readonly id: string;
  readonly organizationId: string;
  readonly sandboxId: string;
  readonly runId: string;
  readonly name: string | null;
  /** Null: not known yet whether it started. */
  readonly pid: number | null;
  readonly command: readonly string[];
  readonly isTty: boolean;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly exit: ProcessExit | null;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export type ProcessChange = Partial<
  Pick<ProcessRecord, 'pid' | 'startedAt' | 'endedAt' | 'exit' | 'stdoutBytes' | 'stderrBytes'>
>;

export async function insertProcess(db: Database, record: ProcessRecord): Promise<void> {
  await db
    .insertInto('processes')
    .values({
      id: record.id,
      organization_id: record.organizationId,
      sandbox_id: record.sandboxId,
      run_id: record.runId,
      name: record.name,
      pid: record.pid,
      command: JSON.stringify(record.command),
      is_tty: record.isTty ? 1 : 0,
      started_at: record.startedAt,
      ended_at: record.endedAt,
      exit: record.exit === null ? null : JSON.stringify(record.exit),
      stdout_bytes: record.stdoutBytes,
      stderr_bytes: record.stderrBytes,
    })
    .execute();
}

/** Finds a process by id, or the latest one of this name. */
export async function findProcess(
  db: Database,
  sandboxId: string,
  idOrName: string,
): Promise<ProcessRecord | undefined> {
  const row = await db
    .selectFrom('processes')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where((build) => build.or([build('id', '=', idOrName.toLowerCase()), build('name', '=', idOrName)]))
    .orderBy('started_at', 'desc')
    .orderBy('id', 'desc')
    .executeTakeFirst();
  return row === undefined ? undefined : toProcess(row);
}

/** Lists processes newest first; one more than the page holds when there is another. */
export async function listProcesses(
  db: Database,
  sandboxId: string,
  page: PageRequest,
  status: 'running' | 'exited' | undefined,
): Promise<readonly ProcessRecord[]> {
  let query = db.selectFrom('processes').selectAll().where('sandbox_id', '=', sandboxId);
  if (status !== undefined) query = query.where('ended_at', status === 'running' ? 'is' : 'is not', null);
  const rows = await newestFirst(query, ['started_at', 'id'], page).execute();
  return rows.map(toProcess);
}

/** Processes without an observed exit. */
export async function listUnfinished(db: Database, sandboxId: string): Promise<readonly ProcessRecord[]> {
  const rows = await db
    .selectFrom('processes')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    .execute();
  return rows.map(toProcess);
}

export async function listSandboxesWithUnfinished(db: Database): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('processes')
    .select('sandbox_id')
    .where('ended_at', 'is', null)
    .distinct()
    .execute();
  return rows.map(({ sandbox_id: id }) => id);
}

/** Updates the observed state of a process. The first observed exit is kept. */
export async function noteProcess(db: Database, id: string, change: ProcessChange): Promise<void> {
  const { pid, startedAt, endedAt, exit, stdoutBytes, stderrBytes } = change;
  const columns = {
    ...(pid === undefined ? {} : { pid }),
    ...(startedAt === undefined ? {} : { started_at: startedAt }),
    ...(endedAt === undefined ? {} : { ended_at: endedAt }),
    ...(exit === undefined ? {} : { exit: JSON.stringify(exit) }),
    ...(stdoutBytes === undefined ? {} : { stdout_bytes: stdoutBytes }),
    ...(stderrBytes === undefined ? {} : { stderr_bytes: stderrBytes }),
  };
  if (Object.keys(columns).length === 0) return;
  await db.updateTable('processes').set(columns).where('id', '=', id).where('ended_at', 'is', null).execute();
}

export async function removeProcess(db: Database, id: string): Promise<void> {
  await db.deleteFrom('processes').where('id', '=', id).execute();
}

/** Deletes the processes of a sandbox that ended first, beyond the latest `kept`. */
export async function forgetEnded(db: Database, sandboxId: string, kept: number): Promise<void> {
  const ended = db
    .selectFrom('processes')
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is not', null);
  const first = await ended
    .select(['ended_at'])
    .orderBy('ended_at', 'desc')
    .offset(kept)
    .limit(1)
    .executeTakeFirst();
  if (first?.ended_at === undefined || first.ended_at === null) return;
  await db
    .deleteFrom('processes')
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', '<=', first.ended_at)
    .execute();
}

/** Deletes the processes of sandboxes that were removed before `before`. The audit log keeps their events. */
export async function forgetOfRemoved(db: Database, before: string): Promise<void> {
  await db
    .deleteFrom('processes')
    .where('sandbox_id', 'in', (removed) =>
      removed.selectFrom('sandboxes').select('id').where('removed_at', '<', before),
    )
    .execute();
}

/** The open run of a sandbox; undefined when it does not run. */
export async function findOpenRun(db: Database, sandboxId: string): Promise<RunRow | undefined> {
  return await selectOpenRun(db, { sandboxId });
}

const selectOpenRun = prepareLookup(['sandboxId'], (db, { sandboxId }) =>
  db.selectFrom('runs').selectAll().where('sandbox_id', '=', sandboxId).where('ended_at', 'is', null),
);

export async function getRuns(db: Database, ids: readonly string[]): Promise<ReadonlyMap<string, RunRow>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('runs')
    .selectAll()
    .where('id', 'in', [...new Set(ids)])
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

function toProcess(row: Selectable<ProcessRow>): ProcessRecord {
  return {
    id: row.id,
    organizationId: row.organization_id,
    sandboxId: row.sandbox_id,
    runId: row.run_id,
    name: row.name,
    pid: row.pid,
    // Only `insertProcess` and `noteProcess` write these.
    command: JSON.parse(row.command) as string[],
    isTty: row.is_tty !== 0,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    exit: row.exit === null ? null : (JSON.parse(row.exit) as ProcessExit),
    stdoutBytes: Number(row.stdout_bytes),
    stderrBytes: Number(row.stderr_bytes),
  };
}
