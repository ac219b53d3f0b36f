import { PlatformError } from '@svc/contract';
import { DEFAULT_PAGE_SIZE } from '@svc/contract/rest';
import type { PageRequest, Position } from '../store/page-request.ts';

/**
 * Reads `limit` and `cursor`. A cursor holds the sort values of the last row that was sent, so that pages neither skip nor repeat rows
 * while others are added and removed; `list` names the list it belongs to.
 * @throws PlatformError `invalid_cursor`
 */
export function readPage(
  query: { readonly limit?: number; readonly cursor?: string },
  list: string,
  columns: number,
): PageRequest {
  const { limit = DEFAULT_PAGE_SIZE, cursor } = query;
  return { limit, after: cursor === undefined ? null : decodeCursor(cursor, list, columns) };
}

/** `rows` has one more than the page holds when there is another page. */
export function toPage<Row, Item>(
  rows: readonly Row[],
  { limit }: PageRequest,
  list: string,
  positionOf: (row: Row) => Position,
  toItem: (row: Row) => Item,
): { data: Item[]; has_more: boolean; next_cursor: string | null } {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = rows.length > limit;
  return {
    data: shown.map(toItem),
    has_more: hasMore,
    next_cursor: hasMore && last !== undefined ? encodeCursor(list, positionOf(last)) : null,
  };
}

function encodeCursor(list: string, position: Position): string {
  return Buffer.from(JSON.stringify([list, ...position])).toString('base64url');
}

function decodeCursor(cursor: string, list: string, columns: number): Position {
  try {
    const [name, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as unknown[];
    const isPosition = position.every((value) => isText(value) || Number.isSafeInteger(value));
    // Only what `encodeCursor` wrote has this shape; the values are used as query parameters alone.
    if (name === list && position.length === columns && isPosition) return position as Position;
  } catch {
    // Not even JSON: refused below like every other invalid cursor.
  }
  throw new PlatformError('invalid_cursor', 'cursor is not one of this list; start again without it', {
    details: { field: 'cursor' },
  });
}

/** Text with NUL is refused: some databases fail the whole query. */
function isText(value: unknown): boolean {
  return typeof value === 'string' && !value.includes('\0');
}
