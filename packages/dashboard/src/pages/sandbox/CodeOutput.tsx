import type { CodeRunResult, ResultTable } from '@svc/sdk';
import type { ReactNode } from 'react';
import { Button } from '../../parts/Button.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { saveFile } from '../../parts/save-file.ts';
import { RasterPicture, rasterTypeOf } from './RasterPicture.tsx';
import type { Shown } from './use-code-run.ts';

/** Limits of a drawn table and text. More would keep the browser busy; `svc code` saves everything. */
const [MAX_ROWS, MAX_COLUMNS, MAX_TEXT] = [200, 50, 200_000];

/** The output is untrusted: text is shown as text, raster pictures are drawn, and markup, SVG included, is never rendered. */
export function CodeOutput({ shown }: { readonly shown: readonly Shown[] }) {
  if (shown.length === 0) return <p className="hint">It printed nothing.</p>;
  return (
    <div className="code-output" aria-live="polite">
      {shown.map((entry) =>
        entry.kind === 'result' ? (
          <Result key={entry.number} {...entry} />
        ) : (
          <pre key={entry.number} className={entry.kind} tabIndex={0}>
            {entry.text}
          </pre>
        ),
      )}
    </div>
  );
}

type ShownResult = Extract<Shown, { kind: 'result' }>;

function Result({ result, number }: ShownResult) {
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

/** The most expressive form; null: plain text, which was printed too. */
function formOf(result: CodeRunResult, number: number): ReactNode {
  const raster = rasterTypeOf(result);
  if (raster !== undefined) return <RasterPicture result={result} type={raster} number={number} />;
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
  if (result.svg !== undefined) return <Svg svg={result.svg} number={number} />;
  const [first] = Object.entries(result.data);
  if (first === undefined || result.text !== undefined) return null;
  const [type, value] = first;
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return <AsText type={type} text={text} />;
}

function AsText({ type, text }: { readonly type: string; readonly text: string }) {
  return (
    <>
      <p className="hint">
        {type}, as text{text.length > MAX_TEXT ? `: the first ${formatNumber(MAX_TEXT)} characters` : ''}
      </p>
      <pre tabIndex={0}>{text.slice(0, MAX_TEXT)}</pre>
    </>
  );
}

/** A browser draws an SVG on the thread of the page, and a few lines of it can take forever: it is a download. */
function Svg({ svg, number }: { readonly svg: string; readonly number: number }) {
  return (
    <>
      <Button icon="download" onClick={() => saveFile(`result-${number}.svg`, [svg])}>
        Save the SVG
      </Button>
      <AsText type="image/svg+xml" text={svg} />
    </>
  );
}

function Rows({ table }: { readonly table: ResultTable }) {
  const rows = table.rows.slice(0, MAX_ROWS);
  const columns = table.columns.slice(0, MAX_COLUMNS);
  const isCut = rows.length < table.rows.length || columns.length < table.columns.length;
  return (
    <>
      <div className="table-room" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>
            <tr>
              {columns.map(({ name, type }, index) => (
                <th key={index} scope="col" title={type}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                {row.slice(0, MAX_COLUMNS).map((cell, column) => (
                  <td key={column} className="mono">
                    {typeof cell === 'string' ? cell : JSON.stringify(cell)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.truncated || isCut ? (
        <p className="hint">
          The first {rows.length} of {table.row_count} rows
          {columns.length < table.columns.length
            ? `, and ${columns.length} of ${table.columns.length} columns`
            : ''}
          .
        </p>
      ) : null}
    </>
  );
}
