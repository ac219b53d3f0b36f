import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CodeRunResult } from '@svc/sdk';

/** MIME types that are saved as files, best first. */
const EXTENSIONS = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/svg+xml': 'svg',
  'application/pdf': 'pdf',
  'application/vnd.svc.table+json': 'json',
  'text/html': 'html',
  'text/markdown': 'md',
  'text/latex': 'tex',
} as const;
/** Forms of a result that are saved as files, because its text does not contain them. */
const PICTURES = /^(?:image\/|application\/pdf)/;

/** Where what code shows is put, beside its text, which is printed anyway. */
export class ResultFiles {
  readonly #folder: string | undefined;
  #count = 0;

  /** Writes no files without a folder. */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** A line about a result that is more than text; undefined for plain text. */
  async take(result: CodeRunResult): Promise<string | undefined> {
    const missing = result.leftOut.map(({ type, message }) => `[${type} was left out: ${message}]`);
    // The keys of the table.
    const type = (Object.keys(EXTENSIONS) as (keyof typeof EXTENSIONS)[]).find(
      (known) => result.data[known] !== undefined,
    );
    const said = type === undefined ? undefined : await this.#save(result, type);
    const lines = [...(said === undefined ? [] : [said]), ...missing];
    return lines.length === 0 ? undefined : lines.join('\n');
  }

  async #save(result: CodeRunResult, type: keyof typeof EXTENSIONS): Promise<string | undefined> {
    if (this.#folder === undefined) {
      return PICTURES.test(type) ? `[${type}: --save-results DIR writes it to a file]` : undefined;
    }
    this.#count += 1;
    // SAFETY: nothing of the name comes from the sandbox.
    const path = join(this.#folder, `${this.#count}.${EXTENSIONS[type]}`);
    await mkdir(this.#folder, { recursive: true });
    await writeFile(path, result.bytes(type) ?? '');
    return `[${type}: ${path}]`;
  }
}
