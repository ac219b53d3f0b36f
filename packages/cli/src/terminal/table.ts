import { showLine } from '@svc/contract/visible';
import type { Painted } from './colours.ts';

export type Cell = string | Painted;

/**
 * Columns aligned to their widest cell, two spaces between; the last one is not padded. The text of a cell cannot add a row or a
 * terminal sequence: the result has only its own colours.
 */
export function formatTable(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [header, ...rows].map((line) => line.map(visible));
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column]?.text.length ?? 0)));
  return lines.map((line) => formatLine(line, widths)).join('');
}

function formatLine(line: readonly Painted[], widths: readonly number[]): string {
  const cells = line.map(
    ({ text, drawn }, column) => drawn + ' '.repeat(Math.max(0, (widths[column] ?? 0) - text.length)),
  );
  return `${cells.join('  ').trimEnd()}\n`;
}

function visible(cell: Cell): Painted {
  if (typeof cell !== 'string') return cell;
  const text = showLine(cell);
  return { text, drawn: text };
}
