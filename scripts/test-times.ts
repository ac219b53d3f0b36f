import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Of a file that has not run yet. */
const UNKNOWN_MS = 10_000;

/** How long each test file took when it ran last. It only decides on an order: a file that cannot be read or written is an empty one. */
export class TestTimes {
  readonly #path: string;
  readonly #msOfFile: Map<string, number>;

  constructor(path: string) {
    this.#path = path;
    this.#msOfFile = readTimes(path);
  }

  of(file: string): number {
    return this.#msOfFile.get(file) ?? UNKNOWN_MS;
  }

  /** The longest first, so that none of them is alone at the end. */
  longestFirst(files: readonly string[]): string[] {
    return files.toSorted((a, b) => this.of(b) - this.of(a));
  }

  /** Keeps what is known of other files: a run may be of a few. */
  save(taken: Iterable<readonly [file: string, ms: number]>): void {
    for (const [file, ms] of taken) this.#msOfFile.set(file, Math.round(ms));
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      writeFileSync(this.#path, JSON.stringify(Object.fromEntries(this.#msOfFile), null, 2));
    } catch {
      // A checkout that cannot be written: the next run starts in the order of names.
    }
  }
}

function readTimes(path: string): Map<string, number> {
  try {
    const entries = Object.entries(JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>);
    return new Map(entries.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
  } catch {
    // None yet, or cut off.
    return new Map();
  }
}
