import { execFile } from 'node:child_process';
import {
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isErrno } from '@svc/contract/errno';
import { UsageError } from '../usage-error.ts';

const STAGE = 'restore.unfinished';
/** The names of the data folder that belong to the restore, in a stage inside the data folder; written before the first one is moved. */
const NAMES = 'names.json';
/** The content of a new file system. */
const NO_DATA = new Set(['lost+found']);
/** The tar process of a killed restore may still write for a moment. */
const REMOVE = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 } as const;
const exec = promisify(execFile);

/**
 * The staging folder of a restore, on the file system of the data folder: beside the data folder, or inside it where the data
 * folder is a mount point, which cannot be replaced by a rename. A stage that is not empty means that a restore did not complete.
 */
export class RestoreStage {
  readonly #dataFolder: string;
  readonly #stage: string;
  readonly #isInside: boolean;

  private constructor(dataFolder: string, isInside: boolean) {
    this.#dataFolder = dataFolder;
    this.#isInside = isInside;
    this.#stage = stagesOf(dataFolder)[isInside ? 'inside' : 'beside'];
  }

  /** First removes what a killed restore has left. @throws UsageError when the data folder is not empty */
  static async prepare(folder: string): Promise<RestoreStage> {
    // A link cannot be replaced by a rename of a folder either.
    const dataFolder = await realpath(folder);
    await discard(dataFolder);
    await requireEmpty(dataFolder);
    const stage = new RestoreStage(dataFolder, await isMountPoint(dataFolder));
    await mkdir(stage.folder, { recursive: true, mode: 0o700 });
    return stage;
  }

  /** The folder for the content of the archive, accessible to root only. */
  get folder(): string {
    return join(this.#stage, 'data');
  }

  /** Moves the restored data into place at once; on a mount point name by name. No server starts before the last one. */
  async takePlace(): Promise<void> {
    await using folder = await open(this.folder, 'r');
    await folder.chmod(0o711);
    // Syncs everything, also what tar wrote: after a power failure the data folder is complete or does not exist.
    await sync(this.#stage);
    if (this.#isInside) await this.#moveNames();
    else await rename(this.folder, this.#dataFolder);
    await sync(this.#dataFolder);
    await rm(join(this.#stage, NAMES), { force: true });
    await rmdir(this.#stage);
  }

  async #moveNames(): Promise<void> {
    const names = (await readdir(this.folder)).toSorted();
    await writeFile(join(this.#stage, NAMES), JSON.stringify(names), { flush: true });
    await sync(this.#stage);
    for (const name of names) await rename(join(this.folder, name), join(this.#dataFolder, name));
    await rmdir(this.folder);
  }

  /** Removes everything after a failure. */
  async discard(): Promise<void> {
    await discard(this.#dataFolder);
  }
}

/** Refuses a half restored data folder: a server would take the rest for deleted. @throws UsageError */
export async function requireRestored(folder: string): Promise<void> {
  const dataFolder = await realpath(folder).catch(() => folder);
  const { inside, beside } = stagesOf(dataFolder);
  const without = { [inside]: `empty ${dataFolder}`, [beside]: `remove ${beside}` };
  for (const [stage, remedy] of Object.entries(without)) {
    if ((await namesIn(stage)).length === 0) continue;
    throw new UsageError(
      `a restore into ${dataFolder} was begun and has not ended\n` +
        `  try: svc restore FILE, which begins anew; to do without it, ${remedy}`,
    );
  }
}

function stagesOf(dataFolder: string): { readonly inside: string; readonly beside: string } {
  return {
    inside: join(dataFolder, STAGE),
    beside: join(dirname(dataFolder), `${basename(dataFolder)}.${STAGE}`),
  };
}

/** Removes the list of names last: the next restore needs it to know what to remove. */
async function discard(dataFolder: string): Promise<void> {
  const { inside, beside } = stagesOf(dataFolder);
  await rm(beside, REMOVE);
  await rm(join(inside, 'data'), REMOVE);
  for (const name of await readNames(join(inside, NAMES))) await rm(join(dataFolder, name), REMOVE);
  await rm(inside, REMOVE);
}

/** SAFETY: written by root into a folder of root; even so, only names directly in the data folder are accepted. */
async function readNames(path: string): Promise<readonly string[]> {
  try {
    const names: unknown = JSON.parse(await readFile(path, 'utf8'));
    return Array.isArray(names) ? names.filter(isName) : [];
  } catch (error) {
    // The list is incomplete, so nothing was moved yet.
    if (error instanceof SyntaxError || isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.startsWith('.') && !value.includes('/');
}

async function requireEmpty(dataFolder: string): Promise<void> {
  const names = (await namesIn(dataFolder)).filter((name) => !NO_DATA.has(name));
  if (names.length === 0) return;
  const found = `${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}`;
  const remedy = (await isMountPoint(dataFolder))
    ? `move what is in ${dataFolder} elsewhere`
    : `mv ${dataFolder} ${dataFolder}.old`;
  throw new UsageError(
    `${dataFolder} is not empty (${found}); a restore replaces nothing\n  try: ${remedy}, or another --path`,
  );
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/** Also true for a bind mount of the same file system. `folder` has no links in it. */
async function isMountPoint(folder: string): Promise<boolean> {
  if ((await stat(folder)).dev !== (await stat(dirname(folder))).dev) return true;
  // https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html: blanks in a path are written as numbers.
  const escaped = folder.replaceAll(
    /[\\\s]/g,
    (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`,
  );
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  return mounts.split('\n').some((line) => line.split(' ')[4] === escaped);
}

/** Syncs the whole file system of a path. */
async function sync(path: string): Promise<void> {
  // SAFETY: no shell; the path is one of ours and begins with a slash.
  await exec('sync', ['--file-system', path]);
}
