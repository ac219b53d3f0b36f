import type { CodeRunResult, ResultTable } from '@svc/sdk';
import type { ReactNode } from 'react';
import { Button } from '../../parts/Button.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { saveFile } from '../../parts/save-file.ts';
import type { Shown } from './use-code-run.ts';

/** Drawn of a table, and of a text. More would keep the browser busy for longer than anybody reads; `svc code` saves all of it. */
const [MAX_ROWS, MAX_COLUMNS, MAX_TEXT] = [200, 50, 200_000];
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;

/** All of it comes from the sandbox: text is shown as text, pictures as pictures, and markup is never made part of the page. */
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

function Result({ result, svg, number }: ShownResult) {
  const form = formOf(result, svg, number);
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
function formOf(result: CodeRunResult, svg: string | null, number: number): ReactNode {
  const picture = pictureOf(result, svg);
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
  if (result.svg !== undefined) return <UndrawnSvg svg={result.svg} number={number} />;
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

function UndrawnSvg({ svg, number }: { readonly svg: string; readonly number: number }) {
  return (
    <>
      <p className="hint">
        This picture is not drawn: it has parts, or as many, that could keep the browser busy for long.
      </p>
      <Button icon="download" onClick={() => saveFile(`result-${number}.svg`, [svg])}>
        Save the SVG
      </Button>
      <AsText type="image/svg+xml" text={svg} />
    </>
  );
}

/** As an address. SAFETY: a picture in `img` runs no script and loads nothing, whatever it says, an SVG too. */
function pictureOf({ data }: CodeRunResult, svg: string | null): string | undefined {
  for (const type of IMAGES) {
    const bytes = data[type];
    if (typeof bytes === 'string') return `data:${type};base64,${bytes.replaceAll(/\s/g, '')}`;
  }
  return svg === null ? undefined : `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
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
