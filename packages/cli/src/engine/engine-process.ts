import { join, resolve } from 'node:path';

const ENGINE_MAIN = resolve(import.meta.dirname, '../../../engine/src/daemon/main.ts');

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

/** The process of the engine with this data folder; undefined when it does not run. */
export async function findEngine(dataFolder: string): Promise<number | undefined> {
  const client = await import('@svc/engine/client');
  return (await client.findEngine(dataFolder))?.pid;
}
