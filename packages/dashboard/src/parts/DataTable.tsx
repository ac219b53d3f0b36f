import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import type { SvcError } from '@svc/sdk';
import { Button } from './Button.tsx';
import { Failure } from './Failure.tsx';
import { restoreFocus } from './restore-focus.ts';
import { LoadingTable } from './Loading.tsx';

/** Rows drawn at a time: a folder may have any number of entries, and each costs the browser a millisecond. */
const DRAWN_ROWS = 200;

export interface Column<Row> {
  readonly title: string;
  readonly render: (row: Row) => ReactNode;
  /** `end`: amounts. `small`: left out on a phone. */
  readonly look?: 'end' | 'small' | 'main';
}

interface DataTableProps<Row> {
  /** The accessible name of the table. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined: not known yet. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  readonly error?: SvcError | null;
  /** Shown instead when there are no rows. */
  readonly empty: ReactNode;
  readonly more?: {
    readonly hasMore: boolean;
    readonly isLoadingMore: boolean;
    readonly loadMore: () => void;
  };
}

export function DataTable<Row>({ label, columns, rows, keyOf, error, empty, more }: DataTableProps<Row>) {
  const [drawn, setDrawn] = useState(DRAWN_ROWS);
  if (rows === undefined) return error ? <Failure error={error} /> : <LoadingTable columns={columns} />;
  if (rows.length === 0) return empty;
  const showMore = (): void => {
    if (rows.length <= drawn) more?.loadMore();
    setDrawn(drawn + DRAWN_ROWS);
  };
  return (
    <>
      {error ? <Failure error={error} /> : null}
      <div className="table-room" tabIndex={0} role="region" aria-label={label}>
        <table>
          <thead>
            <tr>
              {columns.map(({ title, look }) => (
                <th key={title} scope="col" className={look}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, drawn).map((row) => (
              <Row key={keyOf(row)} columns={columns} row={row} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > drawn || more?.hasMore === true ? (
        <div className="more">
          <Button onClick={showMore} isBusy={more?.isLoadingMore === true}>
            Show more
          </Button>
        </div>
      ) : null}
    </>
  );
}

interface RowProps<Item> {
  readonly columns: readonly Column<Item>[];
  readonly row: Item;
}

function Row<Item>({ columns, row }: RowProps<Item>) {
  const element = useRef<HTMLTableRowElement>(null);
  useLayoutEffect(() => {
    const shown = element.current;
    return () => {
      if (shown?.contains(document.activeElement) === true) restoreFocus(shown);
    };
  }, []);
  return (
    <tr ref={element}>
      {columns.map(({ title, look, render }) => (
        <td key={title} className={look}>
          {render(row)}
        </td>
      ))}
    </tr>
  );
}
