import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import type { Database, Tables } from './database.ts';
import { selectSandboxes, toRecord, type SandboxRecord } from './sandboxes.ts';

/** Counting the sandboxes of a label stops here: any rarer label is the better one to start with. */
const COUNT_LIMIT = 1000;

export interface SandboxPage {
  readonly organizationId: string;
  /** A sandbox must have all of these labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly limit: number;
  /** The last sandbox of the previous page. */
  readonly after: { readonly createdAt: string; readonly id: string } | null;
}

/**
 * Lists sandboxes newest first, one more than the limit when there are more. Reads indexes in the order of the page.
 */
export async function listSandboxPage(db: Database, page: SandboxPage): Promise<readonly SandboxRecord[]> {
  const { organizationId, limit, after } = page;
  const [first, ...others] = await rarestFirst(db, organizationId, Object.entries(page.labels));
  if (first !== undefined) return await listLabelled(db, page, first, others);
  let query = selectSandboxes(db)
    .where('sandboxes.organization_id', '=', organizationId)
    .where('sandboxes.removed_at', 'is', null);
  if (after !== null) {
    query = query
      // Redundant on purpose: the first condition is an index range, the second one decides between equal times.
      .where('sandboxes.created_at', '<=', after.createdAt)
      .where((build) =>
        build.or([build('sandboxes.created_at', '<', after.createdAt), build('sandboxes.id', '<', after.id)]),
      );
  }
  const rows = await query
    .orderBy('sandboxes.created_at', 'desc')
    .orderBy('sandboxes.id', 'desc')
    .limit(limit + 1)
    .execute();
  return rows.map(toRecord);
}

type Label = readonly [key: string, value: string];

/** Reads ids in order from the index of one label, and looks up the other labels of each by key. */
async function listLabelled(
  db: Database,
  { organizationId, limit, after }: SandboxPage,
  [key, value]: Label,
  others: readonly Label[],
): Promise<readonly SandboxRecord[]> {
  let matches = db
    .selectFrom('sandbox_labels')
    .select('sandbox_labels.sandbox_id')
    .where('sandbox_labels.organization_id', '=', organizationId)
    .where('sandbox_labels.key', '=', key)
    .where('sandbox_labels.value', '=', value);
  for (const label of others) matches = matches.where((build) => hasLabel(build, label));
  if (after !== null) {
    matches = matches
      .where('sandbox_labels.created_at', '<=', after.createdAt)
      .where((build) =>
        build.or([
          build('sandbox_labels.created_at', '<', after.createdAt),
          build('sandbox_labels.sandbox_id', '<', after.id),
        ]),
      );
  }
  matches = matches
    .orderBy('sandbox_labels.created_at', 'desc')
    .orderBy('sandbox_labels.sandbox_id', 'desc')
    .limit(limit + 1);
  // Removed sandboxes have no labels, so each match is listed.
  const rows = await selectSandboxes(db)
    .where('sandboxes.id', 'in', matches)
    .orderBy('sandboxes.created_at', 'desc')
    .orderBy('sandboxes.id', 'desc')
    .execute();
  return rows.map(toRecord);
}

/**
 * Whether the row has this value of the other label. As a scalar subquery it is evaluated row by row, in the order of
 * the page. A join would be computed for all rows first, and a plain comparison makes PostgreSQL estimate few
 * matches, so that it sorts all rows instead of reading them in order.
 */
function hasLabel(
  build: ExpressionBuilder<Tables, 'sandbox_labels'>,
  [key, value]: Label,
): Expression<SqlBool> {
  return build
    .selectFrom('sandbox_labels as other')
    .select((other) => other('other.value', '=', value).as('is_same'))
    .whereRef('other.sandbox_id', '=', 'sandbox_labels.sandbox_id')
    .where('other.key', '=', key)
    .$asScalar();
}

/** Sorts labels by rarity, so that the search does not walk through a common label to find a rare one. */
async function rarestFirst(
  db: Database,
  organizationId: string,
  labels: readonly Label[],
): Promise<readonly Label[]> {
  if (labels.length < 2) return labels;
  const counts = await countUpTo(db, organizationId, labels);
  return labels
    .map((label, at) => ({ label, count: counts[at] ?? 0 }))
    .toSorted((a, b) => a.count - b.count)
    .map(({ label }) => label);
}

/** Counts all labels in one query; returns the counts in their order. */
async function countUpTo(
  db: Database,
  organizationId: string,
  labels: readonly Label[],
): Promise<readonly number[]> {
  const count = ([key, value]: Label, at: number) => {
    const some = db
      .selectFrom('sandbox_labels')
      .select('sandbox_id')
      .where('organization_id', '=', organizationId)
      .where('key', '=', key)
      .where('value', '=', value)
      // In index order: otherwise PostgreSQL may scan the labels of all organizations until it has this many.
      .orderBy('created_at', 'desc')
      .orderBy('sandbox_id', 'desc')
      .limit(COUNT_LIMIT)
      .as('some');
    return db
      .selectFrom(some)
      .select((build) => build.fn.countAll<number | string>().as('count'))
      .as(`count_${at}`);
  };
  const row = await db.selectNoFrom(labels.map(count)).executeTakeFirstOrThrow();
  return labels.map((_, at) => Number((row as Readonly<Record<string, unknown>>)[`count_${at}`]));
}
