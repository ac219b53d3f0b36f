import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readProcessState } from '../host/process-state.ts';

/** Entry file of the engine, relative to the folder of all packages: built, or its source. */
const ENTRY = /\/engine\/(?:build|src)\/daemon\/main\.[jt]s$/;
/** Option that marks an engine that a server starts, and ends. */
export const SUPERVISED = '--supervised';

/** The parent program of every engine, see `engineCommand`. */
const WRAPPER = 'tini';

export interface FoundEngine {
  readonly pid: number;
  /** Started by a server, this one or an earlier one. */
  readonly isSupervised: boolean;
}

/** The process of the engine with this data folder, from the engine's pid file; undefined when it does not run. */
export async function findEngine(dataFolder: string): Promise<FoundEngine | undefined> {
  const pid = Number(await readFile(join(dataFolder, 'engine.pid'), 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid < 2) return undefined;
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  // SAFETY: pids are reused. Only a process that runs an engine, of this checkout or another, on this very folder is accepted.
  // A zombie has no command line.
  const isEngine = words.some((word) => ENTRY.test(word)) && words.includes(dataFolder);
  return isEngine ? { pid, isSupervised: words.includes(SUPERVISED) } : undefined;
}

/** The parent tini of an engine; undefined when it has none. */
export function findWrapper({ pid }: FoundEngine): number | undefined {
  const { parent = 0 } = readProcessState(pid) ?? {};
  return readProcessState(parent)?.name === WRAPPER ? parent : undefined;
}
