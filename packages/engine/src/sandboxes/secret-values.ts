import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SecretValues } from '@svc/contract/orchestrator';
import { removeTree } from '../host/run-files.ts';

const HANDLE = /^[a-f0-9]{16}$/;

/**
 * Stores secret values apart from the records, in a tmpfs folder that only root can enter: they survive a restart of the engine, as their
 * sandboxes do, but not one of the host.
 */
export class SecretFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  of(handle: string): SecretValues {
    const path = this.#path(handle);
    // No secret was given, or the host was restarted.
    if (!existsSync(path)) return {};
    try {
      // Only `add` writes this file.
      return JSON.parse(readFileSync(path, 'utf8')) as SecretValues;
    } catch {
      return {};
    }
  }

  /** Adds values; earlier ones stay unless they are given again. */
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

  /** Removes the values of all sandboxes but these. */
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
