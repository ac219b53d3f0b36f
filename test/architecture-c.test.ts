import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { findCycle } from './find-cycle.ts';
import { readSources } from './source-files.ts';
import type { SourceFile } from './source-files.ts';

const PROGRAMS = ['init', 'host'];
/** Written by the build. */
const GENERATED = new Set(['filter-programs.h']);

/** A function of a header that another file has to define; `static inline` ones are defined where they stand. */
const PROTOTYPE = /^(?!static|typedef)\w[\w ]*[ *]+(\w+)\([^{;]*\);/gm;

for (const program of PROGRAMS) {
  const root = `packages/${program}/src/`;
  const files = readSources(`${root}**/*.{c,h}`);
  const paths = new Set(files.map(({ path }) => path.slice(root.length)));

  test(`svc-${program}: includes name files from the root of the sources`, () => {
    assert.ok(files.length > 40, `only ${files.length} files`);
    const missing = files.flatMap((file) =>
      includesOf(file)
        .filter((included) => !paths.has(included) && !GENERATED.has(included))
        .map((included) => `${file.path}: ${included}`),
    );
    assert.deepEqual(missing, []);
  });

  test(`svc-${program}: what a header declares is defined in the file of the same name`, () => {
    const texts = new Map(files.map(({ path, text }) => [path, text]));
    const elsewhere = files
      .filter(({ path }) => path.endsWith('.h'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(PROTOTYPE)]
          .map(([, name = '']) => name)
          .filter((name) => !new RegExp(`^\\w.*\\b${name}\\(`, 'm').test(texts.get(sourceOf(path)) ?? ''))
          .map((name) => `${path}: ${name}`),
      );
    assert.deepEqual(elsewhere, []);
  });

  test(`svc-${program}: no circle of files, a header and its source being one`, () => {
    assert.equal(findCycle(graphOf(files, root, moduleOf)), undefined);
  });

  test(`svc-${program}: no circle of folders`, () => {
    assert.equal(findCycle(graphOf(files, root, folderOf)), undefined);
  });
}

test('a circle is found', () => {
  const files = [
    { path: 'src/a/one.c', text: '#include "a/one.h"\n#include "b/two.h"\n' },
    { path: 'src/b/two.c', text: '#include "b/two.h"\n#include "a/one.h"\n' },
  ];
  assert.deepEqual(findCycle(graphOf(files, 'src/', moduleOf)), ['a/one', 'b/two', 'a/one']);
  assert.deepEqual(findCycle(graphOf(files, 'src/', folderOf)), ['a', 'b', 'a']);
});

function includesOf({ text }: SourceFile): readonly string[] {
  return [...text.matchAll(/^#include "([^"]+)"$/gm)].map(([, path = '']) => path);
}

function sourceOf(header: string): string {
  return header.replace(/\.h$/, '.c');
}

function moduleOf(path: string): string {
  return path.replace(/\.[ch]$/, '');
}

/** What lies beside the folders (the start of the program, its bounds) is a place of its own. */
function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === '.' ? moduleOf(path) : folder;
}

function graphOf(
  files: readonly SourceFile[],
  root: string,
  placeOf: (path: string) => string,
): ReadonlyMap<string, readonly string[]> {
  const graph = new Map<string, string[]>();
  for (const file of files) {
    const place = placeOf(file.path.slice(root.length));
    const others = includesOf(file)
      .map(placeOf)
      .filter((other) => other !== place);
    graph.set(place, [...(graph.get(place) ?? []), ...others]);
  }
  return graph;
}
