import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CGROUP_PARENT } from '../cgroup/cgroup-layout.ts';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import { removeTree } from '../host/run-files.ts';
import { identifyProcess, parseIdentity, writtenIdentity } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** The files of an OCI runtime and of the engine for one sandbox. Created before all other resources of the sandbox and removed after them. */
export interface Bundle {
  readonly folder: string;
  /** Written by the runtime when PID 1 runs. */
  readonly pidFile: string;
  /** The error log of the runtime. */
  readonly logFile: string;
  /** The runtime's own state of this sandbox. */
  readonly stateFolder: string;
}

/** The bundles of one runtime under one folder. */
export class Bundles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** @throws when the handle is in use */
  create(handle: string, config: string): Bundle {
    const folder = this.folder(handle);
    mkdirSync(folder, { mode: 0o700 });
    // SAFETY: the configuration holds the token of the sandbox; only root may read it.
    writeFileSync(join(folder, 'config.json'), config, { mode: 0o600 });
    return bundleAt(folder);
  }

  /** The process id that the runtime reports for PID 1; undefined until then. */
  claimedPid(handle: string): number | undefined {
    const text = readKernelFile(bundleAt(this.folder(handle)).pidFile);
    return text === undefined || text.trim() === '' ? undefined : Number(text);
  }

  /** As `recordInit`, for a start that an earlier engine did not see complete. */
  recordInitOf(handle: string): ProcessIdentity | undefined {
    return this.recordInit(bundleAt(this.folder(handle)));
  }

  /** Records the identity of PID 1, so that a later engine can distinguish it from a process with a reused id. */
  recordInit(bundle: Bundle): ProcessIdentity | undefined {
    const identity = identifyProcess(Number(readKernelFile(bundle.pidFile)));
    if (identity !== undefined) writeFileSync(initFile(bundle.folder), writtenIdentity(identity));
    return identity;
  }

  /** PID 1 of a completed start. */
  init(handle: string): ProcessIdentity | undefined {
    return parseIdentity(readKernelFile(initFile(this.folder(handle))) ?? '');
  }

  /** Whether a start of this sandbox began and was not recorded as successful. */
  isUnfinished(handle: string): boolean {
    return existsSync(this.folder(handle)) && this.init(handle) === undefined;
  }

  /** The runtime's log; empty when there is none. */
  log(bundle: Bundle): Promise<string> {
    return readFile(bundle.logFile, 'utf8').catch(() => '');
  }

  /** The parent of the sandbox's cgroup, as its configuration has it; null: the engine's own, also when there is no configuration yet. */
  cgroupParent(handle: string): string | null {
    const text = readKernelFile(join(this.folder(handle), 'config.json')) ?? '';
    const path = /"cgroupsPath":"(?<parent>[^"]*)\/[^"/]*"/.exec(text)?.groups?.['parent'];
    return path === undefined || path === `/${CGROUP_PARENT}` ? null : path;
  }

  remove(handle: string): void {
    removeTree(this.folder(handle));
  }

  handles(): readonly string[] {
    return readdirSync(this.#folder);
  }

  folder(handle: string): string {
    // SAFETY: keeps the joined path, and that of cgroups, inside their folders.
    if (!HANDLE.test(handle)) throw new Error(`${JSON.stringify(handle)} is no handle`);
    return join(this.#folder, handle);
  }
}

const HANDLE = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;

function bundleAt(folder: string): Bundle {
  return {
    folder,
    pidFile: join(folder, 'pid'),
    logFile: join(folder, 'log'),
    stateFolder: join(folder, 'state'),
  };
}

function initFile(folder: string): string {
  return join(folder, 'init');
}
