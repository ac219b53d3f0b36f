import { join } from 'node:path';
import { findCycle } from '../test/find-cycle.ts';
import { betweenFiles, betweenFolders } from '../test/import-graph.ts';
import { isShipped, readSources, type SourceFile } from '../test/source-files.ts';
import { findCoinedNames, findRiddles, readTexts } from '../test/words.ts';
import { TestTimes, timesFileOf, WHOLE_SUITE } from './test-times.ts';

/**
 * Prints the state of the code base: lines, riddle words and made-up names of each package and folder, circles of imports, and the
 * time of the test suite. With `--list` also where the words and names are. Generated documents are not counted.
 */
const packages = readTexts('packages');
const elsewhere = readTexts('elsewhere');
if (process.argv.includes('--list')) [...packages, ...elsewhere].forEach(printPlaces);

const areas = Object.groupBy([...packages, ...elsewhere], ({ path }) => areaOf(path));
console.table({
  ...Object.fromEntries(Object.entries(areas).map(([area, files = []]) => [area, measure(files)])),
  'all packages': measure(packages),
  everything: measure([...packages, ...elsewhere]),
});
const graph = betweenFiles(readSources('{packages,test,bench,scripts,examples}/**/*.{ts,tsx}'));
console.log(`Circles of files:   ${findCycle(graph)?.join(' → ') ?? 'none'}`);
console.log(`Circles of folders: ${findCycle(betweenFolders(graph))?.join(' → ') ?? 'none'}`);
console.log(`Test suite:         ${suiteTime()}`);

function areaOf(path: string): string {
  const [folder = '', name = ''] = path.split('/');
  if (folder === path) return '.';
  return folder === 'packages' ? `${folder}/${name}` : folder;
}

function measure(files: readonly SourceFile[]): Readonly<Record<string, number>> {
  const isDocument = ({ path }: SourceFile) => path.endsWith('.md');
  const isTest = (file: SourceFile) => /^(packages|test|bench)\//.test(file.path) && !isShipped(file);
  const code = files.filter((file) => !isDocument(file));
  return {
    code: countLines(code.filter((file) => !isTest(file))),
    tests: countLines(code.filter(isTest)),
    documents: countLines(files.filter(isDocument)),
    riddles: files.flatMap(({ text }) => findRiddles(text)).length,
    'made-up names': new Set(files.flatMap(namesIn)).size,
  };
}

function countLines(files: readonly SourceFile[]): number {
  return files.reduce((lines, { text }) => lines + text.split('\n').length - 1, 0);
}

/** Made-up names are counted where the check forbids them, in packages. */
function namesIn(file: SourceFile): readonly string[] {
  return file.path.startsWith('packages/') ? [...findCoinedNames(file).keys()] : [];
}

function printPlaces(file: SourceFile): void {
  const lines = file.text.split('\n');
  for (const line of findRiddles(file.text)) console.log(`${file.path}:${line}: ${lines[line - 1]?.trim()}`);
  if (!file.path.startsWith('packages/')) return;
  for (const [name, usual] of findCoinedNames(file)) console.log(`${file.path}: ${name}: ${usual}`);
}

function suiteTime(): string {
  const ms = new TestTimes(timesFileOf(join(import.meta.dirname, '..'))).find(WHOLE_SUITE);
  return ms === undefined
    ? 'has not run as a whole here'
    : `${(ms / 60_000).toFixed(1)} minutes in its last whole run`;
}
