import { sql, type Compilable, type CompiledQuery, type Expression, type QueryResult } from 'kysely';
import type { Database } from './database.ts';

const MARK = '\u0000value:';

type Value = string | number | null;

/** The parameters of a statement. */
type Values<Given> = { readonly [Name in keyof Given]: Value };

/** Placeholders for the parameters; a null is compared or stored as it is. */
export type StandIns<Given> = { readonly [Name in keyof Given]: Expression<Given[Name]> };

type Statement<Given, Row> = (db: Database, values: Given) => Promise<QueryResult<Row>>;

/**
 * A statement that many requests run. It is compiled once per database, transactions included, because compiling
 * costs as much as running it. Two runs may differ in their parameters only; other differences need another
 * statement.
 */
export function prepareStatement<Given extends Values<Given>, Row = unknown>(
  names: readonly (keyof Given & string)[],
  build: (db: Database, values: StandIns<Given>) => Compilable<Row>,
): Statement<Given, Row> {
  // A database and its transactions share one adapter.
  const compiled = new WeakMap<object, CompiledQuery<Row>>();
  // One entry per name, so all names are there.
  const standIns = Object.fromEntries(
    names.map((name) => [name, sql.val(MARK + name)]),
  ) as unknown as StandIns<Given>;
  return async (db, values) => {
    const { adapter } = db.getExecutor();
    let query = compiled.get(adapter);
    if (query === undefined) compiled.set(adapter, (query = build(db, standIns).compile()));
    const parameters = query.parameters.map((parameter) =>
      typeof parameter === 'string' && parameter.startsWith(MARK)
        ? values[parameter.slice(MARK.length) as keyof Given]
        : parameter,
    );
    return await db.executeQuery<Row>({ ...query, parameters });
  };
}
