import { programFile } from '@svc/contract/node-program';

const ENGINE_MAIN = programFile(import.meta.url, {
  built: '../../build/daemon/main.js',
  source: '../daemon/main.ts',
});
/**
 * Calls leave much short-lived garbage. A nursery that may grow takes 128 MiB for it in the end, and a heap that grows by more at a time
 * takes half as much again as it needs; neither is ever given back.
 */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=25'];

/**
 * What runs an engine. tini is a subreaper: what runtimes leave behind is reaped at once, where some hosts' own init takes seconds.
 * Signals to it reach the engine, and its end is the engine's: nobody would find an engine without it to stop it.
 */
export function engineCommand(
  dataFolder: string,
  options: readonly string[],
): readonly [program: string, ...args: string[]] {
  const engine = [process.execPath, ...NODE_OPTIONS, '--', ENGINE_MAIN, '--path', dataFolder, ...options];
  return ['tini', '-s', '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...engine];
}
