import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

/** The engine's entry, from the folder of all packages. */
const ENTRY = 'engine/src/daemon/main.ts';
const ENGINE_MAIN = resolve(import.meta.dirname, '../../..', ENTRY);

/**
 * tini is a subreaper: what runtimes leave behind is reaped at once, where some hosts' own init takes seconds.
 * Signals to it reach the engine, and its end is the engine's: nobody would find an engine without it to stop it.
 */
export function engineCommand(dataFolder: string, options: readonly string[]): readonly string[] {
  const engine = [process.execPath, ENGINE_MAIN, '--path', dataFolder, ...options];
  return ['tini', '-s', '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...engine];
}

export function logPath(dataFolder: string): string {
  return join(dataFolder, 'engine.log');
}

/** The process of the engine with this data folder, which it notes itself; undefined when it does not run. */
export async function findEngine(dataFolder: string): Promise<number | undefined> {
  const pid = Number(await readFile(join(dataFolder, 'engine.pid'), 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid < 2) return undefined;
  const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
  // SAFETY: pids are used again. Only a process that runs an engine, of this checkout or another, on this very folder is taken for it.
  const isEngine = words.some((word) => word.endsWith(`/${ENTRY}`)) && words.includes(dataFolder);
  return isEngine ? pid : undefined;
}
