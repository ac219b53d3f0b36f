import { sql, type SelectQueryBuilder, type SqlBool, type StringReference } from 'kysely';

/** The sort values of the last row of the previous page. */
export type Position = readonly (string | number)[];

/** Lists return one row more than `limit` when there is another page. */
export interface PageRequest {
  readonly limit: number;
  readonly after: Position | null;
}

/** A page of a query's rows, newest first by a time column, with a second column as the tie-breaker. */
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
