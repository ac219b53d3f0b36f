import {
  PostgresAdapter,
  sql,
  type Compilable,
  type CompiledQuery,
  type Expression,
  type OperationNodeSource,
} from 'kysely';
import type { Database } from './database.ts';
import { GatheredLookup } from './gathered-lookup.ts';

const MARK = '\u0000key:';

export type Lookup<Name extends string, Row> = (
  db: Database,
  keys: Readonly<Record<Name, string>>,
) => Promise<Row | undefined>;

/**
 * A query for one row by its keys, for what every request asks: it is built once per database, because building it anew
 * costs as much as running it, and where each query is a trip to another process, those of many requests make one trip.
 * What is found was true at some moment after the call, as with any other query.
 */
export function prepareLookup<Name extends string, Row>(
  names: readonly Name[],
  build: (
    db: Database,
    keys: Readonly<Record<Name, Expression<string>>>,
  ) => Compilable<Row> & OperationNodeSource,
): Lookup<Name, Row> {
  const single = prepareSingle(names, build);
  const gathered = new WeakMap<Database, GatheredLookup<Name, Row>>();
  return async (db, keys) => {
    // A transaction is one connection, and sees what it wrote itself.
    if (db.isTransaction || !(db.getExecutor().adapter instanceof PostgresAdapter))
      return await single(db, keys);
    let lookup = gathered.get(db);
    if (lookup === undefined) gathered.set(db, (lookup = new GatheredLookup(db, names, build)));
    return await lookup.find(keys);
  };
}

function prepareSingle<Name extends string, Row>(
  names: readonly Name[],
  build: (db: Database, keys: Readonly<Record<Name, Expression<string>>>) => Compilable<Row>,
): Lookup<Name, Row> {
  // Transactions are other objects; what runs in them is built anew.
  const compiled = new WeakMap<Database, CompiledQuery<Row>>();
  // One entry per name, so all names are there.
  const standIns = Object.fromEntries(names.map((name) => [name, sql.val(MARK + name)])) as unknown as Record<
    Name,
    Expression<string>
  >;
  return async (db, keys) => {
    const query = compiled.get(db) ?? build(db, standIns).compile();
    compiled.set(db, query);
    const parameters = query.parameters.map((parameter) =>
      typeof parameter === 'string' && parameter.startsWith(MARK)
        ? keys[parameter.slice(MARK.length) as Name]
        : parameter,
    );
    const { rows } = await db.executeQuery<Row>({ ...query, parameters });
    return rows[0];
  };
}
