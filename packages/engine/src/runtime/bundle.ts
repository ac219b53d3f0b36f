import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readKernelFile } from '../cgroup/kernel-file.ts';
import { removeTree } from '../host/run-files.ts';
import { identifyProcess, parseIdentity, writtenIdentity } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** What an OCI runtime and we keep about one sandbox. It appears before anything else of the sandbox and is removed after all else. */
export interface Bundle {
  readonly folder: string;
  /** Written by the runtime when PID 1 runs. */
  readonly pidFile: string;
  /** What the runtime complains about. */
  readonly logFile: string;
  /** For the runtime's own records of this one sandbox. */
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

  /** The process that the runtime says is PID 1; undefined until it says so. */
  claimedPid(handle: string): number | undefined {
    const text = readKernelFile(bundleAt(this.folder(handle)).pidFile);
    return text === undefined || text.trim() === '' ? undefined : Number(text);
  }

  /** As `recordInit`, for a start whose end the engine of that time did not live to see. */
  recordInitOf(handle: string): ProcessIdentity | undefined {
    return this.recordInit(bundleAt(this.folder(handle)));
  }

  /** Notes which process is PID 1, so that a later process of the engine can tell it from one that got its id. */
  recordInit(bundle: Bundle): ProcessIdentity | undefined {
    const identity = identifyProcess(Number(readKernelFile(bundle.pidFile)));
    if (identity !== undefined) writeFileSync(initFile(bundle.folder), writtenIdentity(identity));
    return identity;
  }

  /** PID 1 of a start that was completed while it lived. */
  init(handle: string): ProcessIdentity | undefined {
    return parseIdentity(readKernelFile(initFile(this.folder(handle))) ?? '');
  }

  /** Whether a start of this sandbox was begun and not seen to succeed. */
  isUnfinished(handle: string): boolean {
    return existsSync(this.folder(handle)) && this.init(handle) === undefined;
  }

  /** The runtime's log; empty when it wrote none. */
  log(bundle: Bundle): Promise<string> {
    return readFile(bundle.logFile, 'utf8').catch(() => '');
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
