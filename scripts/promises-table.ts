import { readFileSync } from 'node:fs';
import { replaceBetween } from '../bench/suite/documents.ts';
import { renderTarget } from '../bench/suite/render-table.ts';
import { readResults, type Result } from '../bench/suite/results.ts';

/** The text of docs/promises.md, with the table of bench/results.json. */
export function renderPromises(document: string): string {
  const head =
    '| Promise | Target | Last value | Met | Date | Machine | Benchmark |\n|---|---|---|---|---|---|---|';
  const rows = readResults().map((result) => `| ${cells(result).join(' | ')} |`);
  return replaceBetween(readFileSync(document, 'utf8'), 'results', [head, ...rows].join('\n'));
}

function cells({ promise, target, unit, value, met, date, machine, benchmark }: Result): string[] {
  const last = value === null ? 'not measured' : withUnit(String(value), unit);
  const verdict = met === null ? '' : met ? 'yes' : '**no**';
  const goal = 'atMost' in target && target.atMost === 0 ? '0' : withUnit(renderTarget(target), unit);
  return [promise, goal, last, verdict, date ?? '', machine ?? '', `\`${benchmark}\``];
}

function withUnit(value: string, unit: string): string {
  return unit === '' ? value : `${value} ${unit}`;
}
