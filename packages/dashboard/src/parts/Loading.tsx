/** A placeholder while data is loading. Appears after a moment, to avoid flicker. */
export function Loading({ rows = 3 }: { readonly rows?: number }) {
  return (
    <div className="loading" role="status" aria-label="Loading">
      <Bones rows={rows} />
    </div>
  );
}

/** A placeholder panel of the final height. */
export function LoadingPanel({ rows = 6 }: { readonly rows?: number }) {
  return (
    <section className="panel loading-panel">
      <Loading rows={rows} />
    </section>
  );
}

/** A placeholder page: a heading and a panel. */
export function LoadingPage() {
  return (
    <>
      <header className="page-head loading-head" aria-hidden="true">
        <span className="bone" />
        <span className="bone" />
      </header>
      <LoadingPanel rows={8} />
    </>
  );
}

interface LoadingTableProps {
  readonly columns: readonly { readonly title: string; readonly look?: string }[];
  readonly rows?: number;
}

/** A placeholder table with skeleton rows. */
export function LoadingTable({ columns, rows = 5 }: LoadingTableProps) {
  return (
    <div className="table-room">
      <p className="visually-hidden" role="status">
        Loading
      </p>
      <table aria-hidden="true">
        <thead>
          <tr>
            {columns.map(({ title, look }) => (
              <th key={title} scope="col" className={look}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="loading">
          {Array.from({ length: rows }, (_, index) => (
            <tr key={index}>
              {columns.map(({ title, look }) => (
                <td key={title} className={look}>
                  <span className="bone" />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Bones({ rows }: { readonly rows: number }) {
  return Array.from({ length: rows }, (_, index) => <span key={index} className="bone" />);
}
