import type { Database } from './database.ts';

/** Rows per statement; each takes three of the variables that a database allows. */
const BATCH = 1000;

/** Measurements of a sandbox or volume around a time; milliseconds since 1970. */
export interface MetricSample {
  readonly ownerId: string;
  readonly atMs: number;
  readonly values: Readonly<Record<string, number>>;
}

/** Inserts samples; a sample that another server wrote for the same time stays. */
export async function addSamples(db: Database, samples: readonly MetricSample[]): Promise<void> {
  const rows = samples.map(({ ownerId, atMs, values }) => ({
    owner_id: ownerId,
    at_ms: atMs,
    sample: JSON.stringify(values),
  }));
  for (let start = 0; start < rows.length; start += BATCH) {
    await db
      .insertInto('metric_samples')
      .values(rows.slice(start, start + BATCH))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Lists samples oldest first, `fromMs` included and `toMs` excluded. */
export async function listSamples(
  db: Database,
  ownerId: string,
  fromMs: number,
  toMs: number,
): Promise<readonly MetricSample[]> {
  const rows = await db
    .selectFrom('metric_samples')
    .select(['at_ms', 'sample'])
    .where('owner_id', '=', ownerId)
    .where('at_ms', '>=', fromMs)
    .where('at_ms', '<', toMs)
    .orderBy('at_ms')
    .execute();
  return rows.map(({ at_ms: atMs, sample }) => ({
    ownerId,
    atMs: Number(atMs),
    // Written by `addSamples`.
    values: JSON.parse(sample) as Readonly<Record<string, number>>,
  }));
}

export async function forgetSamples(db: Database, beforeMs: number): Promise<void> {
  await db.deleteFrom('metric_samples').where('at_ms', '<', beforeMs).execute();
}
