import { globSync } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import { parseArgs } from 'node:util';
import type { TestTimes } from './test-times.ts';

/** Not those of other packages, which may lie beside ours. */
const FOREIGN = ['**/node_modules/**', '**/build/**'];
const PATTERNS = ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'packages/*/src/**/*.test.ts'];
/** Time limit of `--changed`, as the sum of the times of its files. */
const CHANGED_BUDGET_MS = 180_000;

const USAGE = `usage: run-tests.ts [WORD…] [--shard K/N] [--changed BASE]
  WORD           only files whose path contains one of the words
  --shard 2/4    the second of four parts that together hold all of them
  --changed main those that a change since main can reach, the nearest first, for some two minutes`;

/** The test files that the arguments select, the longest first. @throws Error with a message for the user */
export async function chooseTests(
  root: string,
  args: readonly string[],
  times: TestTimes,
): Promise<readonly string[]> {
  const { words, shard, base } = readArguments(args);
  const all = PATTERNS.flatMap((pattern) => globSync(pattern, { cwd: root, exclude: FOREIGN }));
  const parts = words.map((word) => (isAbsolute(word) ? relative(root, word) : word));
  const named = all.filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
  const reached = base === undefined ? named : await nearest(root, base, named, times);
  // Sorted by name, because times differ between machines and the shards together must hold every file.
  const mine = reached.toSorted().filter((_, at) => shard === undefined || at % shard.of === shard.index);
  return times.longestFirst(mine);
}

interface Wanted {
  readonly words: readonly string[];
  readonly shard: { readonly index: number; readonly of: number } | undefined;
  readonly base: string | undefined;
}

function readArguments(args: readonly string[]): Wanted {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { shard: { type: 'string' }, changed: { type: 'string' } },
  });
  if (values.shard === undefined) return { words: positionals, shard: undefined, base: values.changed };
  const [, index, of] = (/^(\d+)\/(\d+)$/.exec(values.shard) ?? []).map(Number);
  if (index === undefined || of === undefined || index < 1 || index > of)
    throw new Error(`--shard must be K/N with K from 1 to N, such as 2/4, not ${values.shard}\n${USAGE}`);
  return { words: positionals, shard: { index: index - 1, of }, base: values.changed };
}

async function nearest(
  root: string,
  base: string,
  files: readonly string[],
  times: TestTimes,
): Promise<readonly string[]> {
  const { changedFiles, reachedTests } = await import('./test-reach.ts');
  const reached = [...reachedTests(changedFiles(root, base)).keys()].filter((file) => files.includes(file));
  const chosen: string[] = [];
  let sumMs = 0;
  for (const file of reached) {
    sumMs += times.of(file);
    if (sumMs > CHANGED_BUDGET_MS && chosen.length > 0) break;
    chosen.push(file);
  }
  console.log(
    `the change since ${base} can reach ${reached.length} test files; running the nearest ${chosen.length}`,
  );
  return chosen;
}
