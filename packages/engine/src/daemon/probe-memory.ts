import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { RuntimeProbe } from '../runtime/runtime.ts';

/**
 * Caches, until the host is restarted, that a runtime has passed its probe: starting a sandbox takes a good part of a
 * second. A new build of the runtime or of svc-init is probed again, and so is a runtime that failed.
 */
export class ProbeMemory {
  readonly #file: string;
  readonly #path: string;
  readonly #bootId: string;
  #remembered: Record<string, RuntimeProbe> = {};
  /** Runtimes are probed concurrently; their results are written one after the other. */
  #written: Promise<void> = Promise.resolve();

  private constructor(file: string, path: string, bootId: string) {
    this.#file = file;
    this.#path = path;
    this.#bootId = bootId;
  }

  /** `path`: the folders in which program names are looked up. */
  static async open(folder: string, path: string, bootId: string): Promise<ProbeMemory> {
    const memory = new ProbeMemory(join(folder, 'probes.json'), path, bootId);
    const text = await readFile(memory.#file, 'utf8').catch(() => '{}');
    // Written by this class; a file that does not parse is ignored.
    const kept = Object.entries(parse(text) as Record<string, RuntimeProbe>);
    memory.#remembered = Object.fromEntries(kept.filter(([key]) => key.startsWith(`${bootId} `)));
    return memory;
  }

  async probe(programs: readonly string[], probe: () => Promise<RuntimeProbe>): Promise<RuntimeProbe> {
    const builds = await Promise.all(programs.map((program) => this.#fingerprint(program)));
    const key = [this.#bootId, ...builds].join(' ');
    const known = this.#remembered[key];
    if (known !== undefined)
      return { ...known, released: known.released === null ? null : new Date(known.released) };
    const found = await probe();
    if (found.usable) await this.#remember(key, found);
    return found;
  }

  async #remember(key: string, found: RuntimeProbe): Promise<void> {
    this.#remembered[key] = found;
    // A result that cannot be written is not an error: the next engine probes again.
    this.#written = this.#written.then(() => this.#write()).catch(() => undefined);
    await this.#written;
  }

  async #write(): Promise<void> {
    await writeFile(`${this.#file}.new`, JSON.stringify(this.#remembered), { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
  }

  /** Identifies one build of a program. */
  async #fingerprint(program: string): Promise<string> {
    const folders = program.includes('/') ? [''] : this.#path.split(delimiter);
    for (const folder of folders) {
      const path = folder === '' ? program : join(folder, program);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined) return `${path}:${found.size}:${found.mtimeMs}`;
    }
    return `${program}:missing`;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
