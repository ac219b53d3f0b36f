/** Where a page begins: after the row with these sort values. */
export type Position = readonly (string | number)[];

/** Lists answer one row more than `limit` when there is another page. */
export interface PageRequest {
  readonly limit: number;
  readonly after: Position | null;
}
