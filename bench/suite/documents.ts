import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { digits } from './render-table.ts';
import { describeMachine } from './results.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Replaces a part of a document of this checkout: what is between the comments of that name. */
export function writeBetween(document: string, name: string, text: string): void {
  const path = resolve(ROOT, document);
  writeFileSync(path, replaceBetween(readFileSync(path, 'utf8'), name, text));
}

export function replaceBetween(document: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no place between ${begin} and ${end}`);
  return `${document.slice(0, from + begin.length)}\n${text}\n${document.slice(to)}`;
}

export function writePicture(picture: string, svg: string): void {
  const path = resolve(ROOT, picture);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, svg);
}

/** When and on which machine; `load` is that of the two moments around the run. */
export function describeRun(load: { readonly before: number; readonly after: number }): string {
  const date = new Date().toISOString().slice(0, 10);
  return `Measured ${date}, ${describeMachine()}; load ${load.before.toFixed(1)} before, ${load.after.toFixed(1)} after.`;
}

/** A row of a table with a column per contender or size; NaN: does not apply. */
export interface Row {
  readonly what: string;
  readonly values: readonly number[];
}

export function renderRows(head: readonly string[], rows: readonly Row[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const body = rows.map(({ what, values }) => line([what, ...values.map(digits)]));
  return [line(head), `|${head.map(() => '---|').join('')}`, ...body].join('\n');
}
