import { PostgresAdapter, type Compilable, type Expression, type OperationNodeSource } from 'kysely';
import type { Database } from './database.ts';
import { GatheredLookup } from './gathered-lookup.ts';
import { prepareStatement } from './prepare-statement.ts';

export type Lookup<Name extends string, Row> = (
  db: Database,
  keys: Readonly<Record<Name, string>>,
) => Promise<Row | undefined>;

/**
 * A query for one row by its keys, for what every request asks: it is built once per database, and where each query is a
 * trip to another process, those of many requests make one trip.
 * What is found was true at some moment after the call, as with any other query.
 */
export function prepareLookup<Name extends string, Row>(
  names: readonly Name[],
  build: (
    db: Database,
    keys: Readonly<Record<Name, Expression<string>>>,
  ) => Compilable<Row> & OperationNodeSource,
): Lookup<Name, Row> {
  const single = prepareStatement<Readonly<Record<Name, string>>, Row>(names, build);
  const gathered = new WeakMap<Database, GatheredLookup<Name, Row>>();
  return async (db, keys) => {
    // A transaction is one connection, and sees what it wrote itself.
    if (db.isTransaction || !(db.getExecutor().adapter instanceof PostgresAdapter))
      return (await single(db, keys)).rows[0];
    let lookup = gathered.get(db);
    if (lookup === undefined) gathered.set(db, (lookup = new GatheredLookup(db, names, build)));
    return await lookup.find(keys);
  };
}
