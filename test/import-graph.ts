import { posix } from 'node:path';
import { importsOf, isShipped } from './source-files.ts';
import type { Import, SourceFile } from './source-files.ts';

/** For each file or folder, those it imports. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** The files that each file imports by a relative path, types included. */
export function betweenFiles(files: readonly SourceFile[]): ImportGraph {
  return new Map(files.map((file) => [file.path, relativeImports(file).map(({ target }) => target)]));
}

export function relativeImports(file: SourceFile): readonly (Import & { readonly target: string })[] {
  return importsOf(file.text)
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map((used) => ({ ...used, target: posix.join(posix.dirname(file.path), used.specifier) }));
}

/** The folders that each folder imports. */
export function betweenFolders(graph: ImportGraph): ImportGraph {
  const folders = new Map<string, string[]>();
  for (const [path, targets] of graph) {
    const from = folderOf(path);
    const others = targets.map(folderOf).filter((folder) => folder !== from);
    folders.set(from, [...(folders.get(from) ?? []), ...others]);
  }
  return folders;
}

/**
 * Files directly in `src` or `test` are nodes of their own, and so are test files, which no file can import. Suites and fixtures of
 * a folder are a node beside its shipped files.
 */
function folderOf(path: string): string {
  if (/(^|\/)(src|test)\/[^/]+$|\.test\.tsx?$/.test(path)) return path;
  const folder = posix.dirname(path);
  return path.startsWith('packages/') && !isShipped({ path, text: '' }) ? `${folder} (tests)` : folder;
}
