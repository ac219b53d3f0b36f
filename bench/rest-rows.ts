import { randomUUID } from 'node:crypto';
import type { Database, Tables } from '../packages/server/src/store/database.ts';
import type { Insertable } from 'kysely';

const ROWS_PER_INSERT = 200;
const SECOND_MS = 1000;
const SPEC = JSON.stringify({
  image: { type: 'oci', reference: 'python' },
  resources: { vcpus: 1, memory_mib: 512 },
});

/** Fills the tables without going through the server, which would take hours. Times go back from now, a second each. */
export async function addSandboxes(db: Database, organizationId: string, count: number): Promise<string> {
  const sandboxes: Insertable<Tables['sandboxes']>[] = [];
  const labels: Insertable<Tables['sandbox_labels']>[] = [];
  const begin = Date.now() - count * SECOND_MS;
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    const createdAt = new Date(begin + index * SECOND_MS).toISOString();
    sandboxes.push({
      id,
      organization_id: organizationId,
      name: `bench-${id}`,
      slug: id,
      spec: SPEC,
      ports: '[]',
      desired: 'stopped',
      observed: 'stopped',
      failure_message: null,
      created_at: createdAt,
      started_at: null,
      ended_at: null,
      removed_at: null,
    });
    const common = { sandbox_id: id, organization_id: organizationId, created_at: createdAt };
    labels.push({ ...common, key: 'team', value: `team-${index % 10}` });
    labels.push({ ...common, key: 'stage', value: index % 2 === 0 ? 'test' : 'live' });
  }
  await db.transaction().execute(async (transaction) => {
    await insertAll(sandboxes, (rows) => transaction.insertInto('sandboxes').values(rows).execute());
    await insertAll(labels, (rows) => transaction.insertInto('sandbox_labels').values(rows).execute());
  });
  return sandboxes.at(-1)?.id ?? '';
}

/** Runs of these sandboxes in this month, ten minutes each. */
export async function addRuns(db: Database, organizationId: string, count: number): Promise<void> {
  const sandboxes = await db
    .selectFrom('sandboxes')
    .select('id')
    .where('organization_id', '=', organizationId)
    .limit(1000)
    .execute();
  const monthStart = new Date();
  monthStart.setUTCDate(1);
  monthStart.setUTCHours(0, 0, 0, 0);
  const spacing = Math.max(1, (Date.now() - monthStart.getTime()) / count);
  const runs = Array.from({ length: count }, (_, index): Insertable<Tables['runs']> => {
    const startedAt = monthStart.getTime() + Math.floor(index * spacing);
    return {
      id: randomUUID(),
      organization_id: organizationId,
      sandbox_id: sandboxes[index % sandboxes.length]?.id ?? '',
      vcpus: 1,
      memory_mib: 512,
      disk_mib: 4096,
      started_at: new Date(startedAt).toISOString(),
      ended_at: new Date(startedAt + 600 * SECOND_MS).toISOString(),
      end_reason: 'stopped',
    };
  });
  await db.transaction().execute(async (transaction) => {
    await insertAll(runs, (rows) => transaction.insertInto('runs').values(rows).execute());
  });
}

/** Appends events to the existing ones. Their hashes are empty, because they are not verified here. */
export async function addEvents(db: Database, organizationId: string, count: number): Promise<void> {
  const head = await db
    .selectFrom('organizations')
    .select('event_sequence')
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow();
  const first = Number(head.event_sequence) + 1;
  const actor = JSON.stringify({ kind: 'api_key', api_key_id: randomUUID(), name: 'bench' });
  const begin = Date.now() - 1_000_000 * SECOND_MS;
  const perTransaction = 20_000;
  for (let done = 0; done < count; done += perTransaction) {
    const events = Array.from(
      { length: Math.min(perTransaction, count - done) },
      (_, index): Insertable<Tables['events']> => {
        const sequence = first + done + index;
        return {
          id: randomUUID(),
          organization_id: organizationId,
          sequence,
          category: 'sandbox',
          event_type: sequence % 100 === 0 ? 'sandbox_failed' : 'sandbox_started',
          actor,
          payload: '{"sandbox_id":"00000000-0000-4000-8000-000000000000"}',
          request_id: null,
          source_address: '127.0.0.1',
          timestamp: new Date(begin + sequence * SECOND_MS).toISOString(),
          previous_hash: '',
          hash: '',
        };
      },
    );
    await db.transaction().execute(async (transaction) => {
      await insertAll(events, (rows) => transaction.insertInto('events').values(rows).execute());
    });
  }
  await db
    .updateTable('organizations')
    .set({ event_sequence: first + count - 1 })
    .where('id', '=', organizationId)
    .execute();
}

async function insertAll<Row>(
  rows: readonly Row[],
  insert: (rows: Row[]) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_PER_INSERT)
    await insert(rows.slice(at, at + ROWS_PER_INSERT));
}
