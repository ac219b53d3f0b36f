import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The time of a file that has not run yet. */
const UNKNOWN_MS = 10_000;

/** The entry with the time of the last run of all files. */
export const WHOLE_SUITE = 'whole suite';

export function timesFileOf(root: string): string {
  return join(root, 'node_modules/.cache/svc-test-times.json');
}

/** How long each test file took in its last run. Used only for ordering, so an unreadable or unwritable times file is ignored. */
export class TestTimes {
  readonly #path: string;
  readonly #msOfFile: Map<string, number>;

  constructor(path: string) {
    this.#path = path;
    this.#msOfFile = readTimes(path);
  }

  of(file: string): number {
    return this.find(file) ?? UNKNOWN_MS;
  }

  /** Undefined when it has not run yet. */
  find(file: string): number | undefined {
    return this.#msOfFile.get(file);
  }

  /** The longest first, so that no long file runs alone at the end. */
  longestFirst(files: readonly string[]): string[] {
    return files.toSorted((a, b) => this.of(b) - this.of(a));
  }

  /** Keeps the times of other files, because a run may be of a few. */
  save(taken: Iterable<readonly [file: string, ms: number]>): void {
    for (const [file, ms] of taken) this.#msOfFile.set(file, Math.round(ms));
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      writeFileSync(this.#path, JSON.stringify(Object.fromEntries(this.#msOfFile), null, 2));
    } catch {
      // The checkout is read-only: the next run uses the order of names.
    }
  }
}

function readTimes(path: string): Map<string, number> {
  try {
    const entries = Object.entries(JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>);
    return new Map(entries.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
  } catch {
    // The file does not exist yet, or is truncated.
    return new Map();
  }
}
