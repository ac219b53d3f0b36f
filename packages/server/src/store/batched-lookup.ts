import { sql, type CompiledQuery, type Expression, type OperationNodeSource } from 'kysely';
import type { Database } from './database.ts';

/** Maximum number of concurrent queries. More queries would each carry fewer keys and cost both sides more. */
const MAX_UNDER_WAY = 2;
/** Maximum number of keys per query; further keys go into the next one. */
const MAX_KEYS = 500;

interface Waiting<Row> {
  readonly values: readonly string[];
  readonly found: PromiseWithResolvers<Row | undefined>;
}

/**
 * Batches the lookups of many callers into one query (PostgreSQL). Results are not cached: a lookup joins only a
 * query that was not sent yet, so each caller sees everything that was committed before its call. A lone caller does
 * not wait for a batch to fill.
 */
export class BatchedLookup<Name extends string, Row> {
  readonly #db: Database;
  readonly #names: readonly Name[];
  readonly #query: CompiledQuery<Row & { readonly lookup_position: number }>;
  readonly #waiting = new Map<string, Waiting<Row>>();
  #underWay = 0;
  #isScheduled = false;

  constructor(
    db: Database,
    names: readonly Name[],
    build: (db: Database, keys: Readonly<Record<Name, Expression<string>>>) => OperationNodeSource,
  ) {
    this.#db = db;
    this.#names = names;
    this.#query = buildQuery(db, names, build);
  }

  async find(keys: Readonly<Record<Name, string>>): Promise<Row | undefined> {
    const values = this.#names.map((name) => keys[name]);
    // PostgreSQL rejects text with NUL, so this key cannot exist and would fail the whole batch.
    if (values.some((value) => value.includes('\0'))) return undefined;
    const together = values.join('\0');
    let waiting = this.#waiting.get(together);
    if (waiting === undefined) {
      waiting = { values, found: Promise.withResolvers() };
      this.#waiting.set(together, waiting);
      this.#schedule();
    }
    return await waiting.found.promise;
  }

  /** Sends the batch at the end of the event loop's turn, so that lookups of the same turn share it. */
  #schedule(): void {
    if (this.#isScheduled || this.#underWay >= MAX_UNDER_WAY || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send(this.#take());
    });
  }

  #take(): readonly Waiting<Row>[] {
    const taken = [...this.#waiting].slice(0, MAX_KEYS);
    for (const [together] of taken) this.#waiting.delete(together);
    return taken.map(([, waiting]) => waiting);
  }

  async #send(taken: readonly Waiting<Row>[]): Promise<void> {
    this.#underWay += 1;
    // Keys that did not fit may be sent in a second, concurrent query.
    this.#schedule();
    try {
      const parameters = this.#names.map((_, at) => taken.map(({ values }) => values[at]));
      const { rows } = await this.#db.executeQuery<Row & { readonly lookup_position: number }>({
        ...this.#query,
        parameters,
      });
      for (const row of rows) taken[row.lookup_position - 1]?.found.resolve(row);
      for (const { found } of taken) found.resolve(undefined);
    } catch (error) {
      for (const { found } of taken) found.reject(error);
    } finally {
      this.#underWay -= 1;
      this.#schedule();
    }
  }
}

/** Joins a table of keys, one column per name, with the result of the query for each key. */
function buildQuery<Name extends string, Row>(
  db: Database,
  names: readonly Name[],
  build: (db: Database, keys: Readonly<Record<Name, Expression<string>>>) => OperationNodeSource,
): CompiledQuery<Row & { readonly lookup_position: number }> {
  // One entry per name, so all names are there.
  const columns = Object.fromEntries(
    names.map((name) => [name, sql.ref(`asked.${name}`)]),
  ) as unknown as Record<Name, Expression<string>>;
  const arrays = sql.join(names.map(() => sql`${[]}::text[]`));
  const header = sql.join([...names.map((name) => sql.id(name)), sql.id('position')]);
  return sql<Row & { readonly lookup_position: number }>`
    select found.*, asked.position::int as lookup_position
    from unnest(${arrays}) with ordinality as asked (${header})
    cross join lateral ${build(db, columns)} as found`.compile(db);
}
