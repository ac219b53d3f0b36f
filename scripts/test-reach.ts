import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { importsOf, readSources } from '../test/source-files.ts';

/** C programs and files that are not code have no imports: these test folders cover them. */
const TESTS_OF_OTHER_FILES: readonly (readonly [RegExp, RegExp])[] = [
  [/^packages\/(init|host)\//, /^packages\/(init|host)\/test\/|^test\/engine\//],
  [/\.md$/, /^test\/documents\/|^test\/hygiene/],
  [/^scripts\/|^Makefile$/, /^test\/(run-tests|hygiene)/],
];
const FAR = 4;

/**
 * The test files that a change can reach along imports, nearest first, with the number of imports between. Tests that start a built
 * program do not import it, so they are found only through their other imports.
 */
export function reachedTests(changed: readonly string[]): ReadonlyMap<string, number> {
  const importers = readImporters();
  const distances = new Map(changed.map((file) => [file, 0]));
  // Iterating a map also visits entries that are added meanwhile, in order: a breadth-first search.
  for (const [file, distance] of distances)
    for (const importer of importers.get(file) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  for (const test of readSources('{test,packages}/**/*.test.ts'))
    if (!distances.has(test.path) && isLookedAtBy(changed, test.path)) distances.set(test.path, FAR);
  const tests = [...distances].filter(([file]) => file.endsWith('.test.ts'));
  return new Map(tests.toSorted(([, a], [, b]) => a - b));
}

/** The files that differ from `base`, committed or not. */
export function changedFiles(root: string, base: string): readonly string[] {
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean);
  const changed = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')];
  return changed.filter((file) => existsSync(join(root, file)));
}

function isLookedAtBy(changed: readonly string[], test: string): boolean {
  return TESTS_OF_OTHER_FILES.some(
    ([files, tests]) => tests.test(test) && changed.some((file) => files.test(file)),
  );
}

function readImporters(): ReadonlyMap<string, readonly string[]> {
  const importers = new Map<string, string[]>();
  const entryPoints = readEntryPoints();
  for (const { path, text } of readSources('{packages,test,scripts,bench}/**/*.{ts,tsx}'))
    for (const { specifier } of importsOf(text)) {
      const file = entryPoints.get(specifier) ?? normalize(join(dirname(path), specifier));
      const known = importers.get(file);
      if (known === undefined) importers.set(file, [path]);
      else known.push(path);
    }
  return importers;
}

/** `@svc/contract/rest` to `packages/contract/src/rest/index.ts`. */
function readEntryPoints(): ReadonlyMap<string, string> {
  return new Map(
    readSources('packages/*/package.json').flatMap(({ path, text }) => {
      const { name, exports = {} } = JSON.parse(text) as { name: string; exports?: Record<string, string> };
      return Object.entries(exports).map(([entry, file]): [string, string] => [
        `${name}${entry.slice(1)}`,
        normalize(join(dirname(path), file)),
      ]);
    }),
  );
}
