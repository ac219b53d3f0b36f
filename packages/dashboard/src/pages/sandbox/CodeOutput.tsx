import type { CodeRunResult, ResultTable } from '@svc/sdk';
import type { ReactNode } from 'react';
import { Button } from '../../parts/Button.tsx';
import { saveFile } from '../../parts/save-file.ts';
import type { Shown } from './use-code-run.ts';

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;

/** All of it comes from the sandbox: text is shown as text, pictures as pictures, and markup is never made part of the page. */
export function CodeOutput({ shown }: { readonly shown: readonly Shown[] }) {
  if (shown.length === 0) return <p className="hint">It printed nothing.</p>;
  return (
    <div className="code-output" aria-live="polite">
      {shown.map((entry, index) =>
        // They only ever come at the end, so a place names one for good.
        entry.kind === 'result' ? (
          <Result key={index} result={entry.result} number={index + 1} />
        ) : (
          <pre key={index} className={entry.kind} tabIndex={0}>
            {entry.text}
          </pre>
        ),
      )}
    </div>
  );
}

function Result({ result, number }: { readonly result: CodeRunResult; readonly number: number }) {
  const form = formOf(result, number);
  if (form === null && result.leftOut.length === 0) return null;
  return (
    <figure className="result">
      {form}
      {result.leftOut.length === 0 ? null : (
        <figcaption className="hint">
          Left out: {result.leftOut.map(({ type, reason }) => `${type} (${reason})`).join(', ')}
        </figcaption>
      )}
    </figure>
  );
}

/** The one that says most; null: it is plain text, which was printed too. */
function formOf(result: CodeRunResult, number: number): ReactNode {
  const picture = pictureOf(result);
  if (picture !== undefined) return <img src={picture} alt={result.text ?? `Result ${number}`} />;
  if (result.table !== undefined) return <Rows table={result.table} />;
  const pdf = result.bytes('application/pdf');
  if (pdf !== undefined) {
    const save = (): void => saveFile(`result-${number}.pdf`, [new Uint8Array(pdf)]);
    return (
      <Button icon="download" onClick={save}>
        Save the PDF
      </Button>
    );
  }
  const [type = 'text/plain', value] = Object.entries(result.data)[0] ?? [];
  if (result.text !== undefined) return null;
  return (
    <>
      <p className="hint">{type}, as text</p>
      <pre tabIndex={0}>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
    </>
  );
}

/** As an address. SAFETY: a picture in `img` runs no script and loads nothing, whatever it says, an SVG too. */
function pictureOf({ data, svg }: CodeRunResult): string | undefined {
  for (const type of IMAGES) {
    const bytes = data[type];
    if (typeof bytes === 'string') return `data:${type};base64,${bytes.replaceAll(/\s/g, '')}`;
  }
  return svg === undefined ? undefined : `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function Rows({ table }: { readonly table: ResultTable }) {
  return (
    <>
      <div className="table-room" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>
            <tr>
              {table.columns.map(({ name, type }, index) => (
                <th key={index} scope="col" title={type}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {table.rows.map((row, index) => (
              <tr key={index}>
                {row.map((cell, column) => (
                  <td key={column} className="mono">
                    {typeof cell === 'string' ? cell : JSON.stringify(cell)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.truncated ? (
        <p className="hint">
          The first {table.rows.length} of {table.row_count} rows.
        </p>
      ) : null}
    </>
  );
}
