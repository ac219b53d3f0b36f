import type { Compilable, CompiledQuery } from 'kysely';
import type { Database } from './database.ts';

const MARK = '\u0000parameter:';

/**
 * A query that is built once per database and run often with other values: for what every request asks, building it anew
 * costs as much as running it. `build` gets a stand-in for each value, which must be used as a parameter of the query.
 */
export function prepareQuery<Name extends string, Row>(
  names: readonly Name[],
  build: (db: Database, values: Readonly<Record<Name, string>>) => Compilable<Row>,
): (db: Database, values: Readonly<Record<Name, string>>) => Promise<Row | undefined> {
  // Transactions are other objects; what runs in them is built anew.
  const compiled = new WeakMap<Database, CompiledQuery<Row>>();
  // One entry per name, so all names are there.
  const standIns = Object.fromEntries(names.map((name) => [name, MARK + name])) as Record<Name, string>;
  return async (db, values) => {
    const query = compiled.get(db) ?? build(db, standIns).compile();
    compiled.set(db, query);
    const parameters = query.parameters.map((parameter) =>
      typeof parameter === 'string' && parameter.startsWith(MARK)
        ? values[parameter.slice(MARK.length) as Name]
        : parameter,
    );
    const { rows } = await db.executeQuery<Row>({ ...query, parameters });
    return rows[0];
  };
}
