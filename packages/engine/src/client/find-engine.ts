import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readProcessState } from '../host/process-state.ts';

/** The engine's entry, from the folder of all packages: built, or its source. */
const ENTRY = /\/engine\/(?:build|src)\/daemon\/main\.[jt]s$/;
/** Said to an engine by the server that starts it, and that ends it. */
export const SUPERVISED = '--supervised';

/** The program above every engine, see `engineCommand`. */
const WRAPPER = 'tini';

export interface FoundEngine {
  readonly pid: number;
  /** A server started it, this one or one before it. */
  readonly isSupervised: boolean;
}

/** The process of the engine with this data folder, which it notes itself; undefined when it does not run. */
export async function findEngine(dataFolder: string): Promise<FoundEngine | undefined> {
  const pid = Number(await readFile(join(dataFolder, 'engine.pid'), 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid < 2) return undefined;
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  // SAFETY: pids are used again. Only a process that runs an engine, of this checkout or another, on this very folder is taken for it.
  // One that has ended and was not reaped has no command line.
  const isEngine = words.some((word) => ENTRY.test(word)) && words.includes(dataFolder);
  return isEngine ? { pid, isSupervised: words.includes(SUPERVISED) } : undefined;
}

/** The tini above an engine; undefined when it has none. */
export function findWrapper({ pid }: FoundEngine): number | undefined {
  const { parent = 0 } = readProcessState(pid) ?? {};
  return readProcessState(parent)?.name === WRAPPER ? parent : undefined;
}
