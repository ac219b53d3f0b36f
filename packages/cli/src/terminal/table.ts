import { stripVTControlCharacters } from 'node:util';

/** Columns aligned to their widest cell, two spaces between; the last one is not padded. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ''))));
  return lines.map((line) => formatLine(line, widths)).join('');
}

function formatLine(line: readonly string[], widths: readonly number[]): string {
  const cells = line.map(
    (cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - width(cell))),
  );
  return `${cells.join('  ').trimEnd()}\n`;
}

/** Colours take no room. */
function width(cell: string): number {
  return stripVTControlCharacters(cell).length;
}
