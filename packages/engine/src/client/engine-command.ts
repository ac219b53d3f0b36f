import { programFile } from '@svc/contract/node-program';

const ENGINE_MAIN = programFile(import.meta.url, {
  built: '../../build/daemon/main.js',
  source: '../daemon/main.ts',
});
/**
 * Memory options of V8. Calls leave much short-lived garbage: an unlimited nursery grows to 128 MiB, and a heap with larger growth steps
 * takes half as much again as it needs; V8 gives neither back.
 */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=25'];

/**
 * The command that runs an engine. tini is a subreaper: it reaps what runtimes leave behind at once, where the init of some hosts takes
 * seconds. tini passes signals on to the engine. An engine whose tini has died is killed: no command could find it to stop it.
 */
export function engineCommand(
  dataFolder: string,
  options: readonly string[],
): readonly [program: string, ...args: string[]] {
  const engine = [process.execPath, ...NODE_OPTIONS, '--', ENGINE_MAIN, '--path', dataFolder, ...options];
  return ['tini', '-s', '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...engine];
}
