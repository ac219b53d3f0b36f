import { PostgresAdapter, type Compilable, type Expression, type OperationNodeSource } from 'kysely';
import type { Database } from './database.ts';
import { BatchedLookup } from './batched-lookup.ts';
import { prepareStatement } from './prepare-statement.ts';

export type Lookup<Name extends string, Row> = (
  db: Database,
  keys: Readonly<Record<Name, string>>,
) => Promise<Row | undefined>;

/**
 * A query for one row by its keys, for reads that every request makes. It is compiled once per database; on
 * PostgreSQL, concurrent lookups share one round trip.
 * The result was true at some moment after the call, as with any other query.
 */
export function prepareLookup<Name extends string, Row>(
  names: readonly Name[],
  build: (
    db: Database,
    keys: Readonly<Record<Name, Expression<string>>>,
  ) => Compilable<Row> & OperationNodeSource,
): Lookup<Name, Row> {
  const single = prepareStatement<Readonly<Record<Name, string>>, Row>(names, build);
  const gathered = new WeakMap<Database, BatchedLookup<Name, Row>>();
  return async (db, keys) => {
    // A transaction has one connection, and has to see its own writes.
    if (db.isTransaction || !(db.getExecutor().adapter instanceof PostgresAdapter))
      return (await single(db, keys)).rows[0];
    let lookup = gathered.get(db);
    if (lookup === undefined) gathered.set(db, (lookup = new BatchedLookup(db, names, build)));
    return await lookup.find(keys);
  };
}
