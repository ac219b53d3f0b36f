import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeTree } from '../host/run-files.ts';
import type { SecretValues } from '../client/engine-api.ts';

const HANDLE = /^[a-f0-9]{16}$/;

/**
 * Values of secrets, apart from the records: in files of a folder that is memory and only root enters, so that they outlive the engine,
 * as their sandboxes do, and not the host.
 */
export class SecretFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  of(handle: string): SecretValues {
    const path = this.#path(handle);
    // None was ever given, or the host was started anew.
    if (!existsSync(path)) return {};
    try {
      // Only `add` writes it.
      return JSON.parse(readFileSync(path, 'utf8')) as SecretValues;
    } catch {
      return {};
    }
  }

  /** Those given before stay unless they are given again. */
  add(handle: string, values: SecretValues): void {
    if (Object.keys(values).length === 0) return;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#path(handle);
    writeFileSync(`${path}.new`, JSON.stringify({ ...this.of(handle), ...values }), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  remove(handle: string): void {
    removeTree(this.#path(handle));
  }

  /** Removes what belongs to none of these. */
  keepOnly(handles: ReadonlySet<string>): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder))
      if (!handles.has(name)) rmSync(join(this.#folder, name), { force: true });
  }

  #path(handle: string): string {
    // SAFETY: 16 hexadecimal digits, so the path stays inside the folder.
    if (!HANDLE.test(handle)) throw new Error('Not the handle of a sandbox');
    return join(this.#folder, handle);
  }
}
