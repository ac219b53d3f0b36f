import { chownSync, existsSync, linkSync, mkdirSync, writeFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { removeFile, removeTree } from '../host/run-files.ts';

const SCRIPT_NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]*$/;

export interface GuestFolder {
  /** Shown read-only at /.svc in the sandbox. */
  readonly path: string;
  readonly meminfo: string;
  readonly cpuinfo: string;
  readonly cpuOnline: string;
}

/** What a sandbox is shown instead of the host's figures. */
export interface ProcContent {
  readonly meminfo: string;
  readonly cpuinfo: string;
  readonly cpuOnline: string;
}

/**
 * The files that a sandbox shares with its engine, on a tmpfs of the engine's own: the program svc-init, the socket,
 * scripts, and what is shown over /proc/meminfo and /proc/cpuinfo. svc-init is one inode for all, by hard link, until the sandbox runs.
 */
export class GuestFolders {
  readonly #folder: string;

  constructor(runFolder: string) {
    this.#folder = join(runFolder, 'guests');
  }

  /** Copies svc-init beside the folders; sandboxes that run keep the program they were started with. */
  async prepare(initProgram: string): Promise<void> {
    // Root inside the sandbox is another user here: the way to its folder is open, others' folders are not.
    await mkdir(this.#folder, { recursive: true, mode: 0o711 });
    const temporary = join(this.#folder, 'svc-init.new');
    await copyFile(initProgram, temporary);
    await chmod(temporary, 0o555);
    await rename(temporary, this.#initProgram());
  }

  /** `owner`: whom root of the sandbox is on this host. */
  create(
    handle: string,
    owner: number,
    content: ProcContent & { readonly scripts: Readonly<Record<string, string>> },
  ): GuestFolder {
    const folder = this.of(handle);
    const base = join(this.#folder, handle);
    removeTree(base);
    mkdirSync(base, { mode: 0o700 });
    // SAFETY: the scripts come from the caller's spec, and handles can be seen in the host's table of mounts: only root of this very
    // sandbox gets in.
    chownSync(base, owner, owner);
    mkdirSync(join(folder.path, 'scripts'), { mode: 0o755, recursive: true });
    linkSync(this.#initProgram(), join(folder.path, 'init'));
    writeFileSync(folder.meminfo, content.meminfo, { mode: 0o444 });
    writeFileSync(folder.cpuinfo, content.cpuinfo, { mode: 0o444 });
    writeFileSync(folder.cpuOnline, content.cpuOnline, { mode: 0o444 });
    this.writeScripts(handle, content.scripts);
    return folder;
  }

  /**
   * Takes svc-init out of the folder, once PID 1 runs and before anything of the caller does. It is one file for all: its count of links
   * and the events of its use would tell of every other sandbox that starts.
   */
  hideInit(handle: string): void {
    removeFile(join(this.of(handle).path, 'init'));
  }

  writeScripts(handle: string, scripts: Readonly<Record<string, string>>): void {
    const folder = join(this.of(handle).path, 'scripts');
    const files = Object.entries(scripts).map(([name, body]) => ({ path: scriptPath(folder, name), body }));
    for (const { path, body } of files) writeFileSync(path, body, { mode: 0o555 });
  }

  of(handle: string): GuestFolder {
    const base = join(this.#folder, handle);
    return {
      path: join(base, 'guest'),
      meminfo: join(base, 'meminfo'),
      cpuinfo: join(base, 'cpuinfo'),
      cpuOnline: join(base, 'cpu-online'),
    };
  }

  exists(handle: string): boolean {
    return existsSync(this.of(handle).path);
  }

  remove(handle: string): void {
    removeTree(join(this.#folder, handle));
  }

  #initProgram(): string {
    return join(this.#folder, 'svc-init');
  }
}

/** SAFETY: names come from callers, and we write as root: a name stays inside the folder, also without the check of the schema. */
function scriptPath(folder: string, name: string): string {
  if (!SCRIPT_NAME.test(name)) throw new Error(`${JSON.stringify(name)} is not a script name`);
  return join(folder, name);
}
