import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const IGNORED = /(^|\/)(node_modules|build|\.git|\.svc|coverage)(\/|$)/;

export interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

/** Files of this repository, as they are on disk, without what is installed or built. */
export function readSources(...patterns: readonly string[]): readonly SourceFile[] {
  const paths = patterns.flatMap((pattern) =>
    globSync(pattern, { cwd: ROOT, exclude: (path) => IGNORED.test(path) }),
  );
  return [...new Set(paths)]
    .toSorted()
    .map((path) => ({ path, text: readFileSync(resolve(ROOT, path), 'utf8') }));
}

export interface Import {
  readonly specifier: string;
  readonly kind: 'static' | 'type' | 'dynamic';
}

/** Everything a module names in an import or a re-export. */
export function importsOf(text: string): readonly Import[] {
  const statements = text.matchAll(/^(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)';?$/gm);
  const dynamic = text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g);
  return [
    ...[...statements].map(([, type, specifier = '']): Import => ({
      specifier,
      kind: type ? 'type' : 'static',
    })),
    ...[...dynamic].map(([, specifier = '']): Import => ({ specifier, kind: 'dynamic' })),
  ];
}

/** Code that ships, as opposed to code that tests it: tests, the suites of ports, and what stands in a folder `testing`. */
export function isShipped({ path }: SourceFile): boolean {
  return path.startsWith('packages/') && path.includes('/src/') && !TESTING.test(path);
}

const TESTING = /\.(test|suite)\.tsx?$|\/testing\//;
