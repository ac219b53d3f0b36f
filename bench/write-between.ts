import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, release } from 'node:os';
import { dirname, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');

/** Replaces the results in a document of this checkout, between the comments of that name. */
export async function writeBetween(document: string, name: string, text: string): Promise<void> {
  const path = resolve(ROOT, document);
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const before = await readFile(path, 'utf8');
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${document} has no place between ${begin} and ${end}`);
  await writeFile(path, `${before.slice(0, from + begin.length)}\n${text}\n${before.slice(to)}`);
}

export async function writePicture(picture: string, svg: string): Promise<void> {
  const path = resolve(ROOT, picture);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, svg);
}

/** When and where: `load` is that of the two moments around the run. */
export function describeRun(load: { readonly before: number; readonly after: number }): string {
  const [first] = cpus();
  const date = new Date().toISOString().slice(0, 10);
  const host = `${cpus().length} cores (${first?.model ?? 'unknown'}), Linux ${release()}`;
  return `Measured ${date}, ${host}; load ${load.before.toFixed(1)} before, ${load.after.toFixed(1)} after.`;
}

export function renderRows(
  head: readonly string[],
  rows: readonly { readonly what: string; readonly values: readonly number[] }[],
): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const body = rows.map(({ what, values }) => line([what, ...values.map(digits)]));
  return [line(head), `|${head.map(() => '---|').join('')}`, ...body].join('\n');
}

/** NaN means that the value does not apply. */
function digits(value: number): string {
  if (Number.isNaN(value)) return '–';
  if (value >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}
