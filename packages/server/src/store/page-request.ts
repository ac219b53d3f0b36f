import { sql, type SelectQueryBuilder, type SqlBool, type StringReference } from 'kysely';

/** Where a page begins: after the row with these sort values. */
export type Position = readonly (string | number)[];

/** Lists answer one row more than `limit` when there is another page. */
export interface PageRequest {
  readonly limit: number;
  readonly after: Position | null;
}

/** A page of the rows of a query, newest first by a column with the time and one that decides between equal times. */
export function newestFirst<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  [time, id]: readonly [StringReference<Tables, Table>, StringReference<Tables, Table>],
  { limit, after }: PageRequest,
): SelectQueryBuilder<Tables, Table, Row> {
  const columns = [sql.ref<string>(time), sql.ref<string>(id)] as const;
  const position = after?.map(String);
  const rest =
    position === undefined
      ? query
      : query.where(sql<SqlBool>`(${sql.join(columns)}) < (${sql.join(position)})`);
  return rest
    .orderBy(columns[0], 'desc')
    .orderBy(columns[1], 'desc')
    .limit(limit + 1);
}
