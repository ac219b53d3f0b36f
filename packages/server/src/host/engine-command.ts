import { join } from 'node:path';
import { SUPERVISED } from '@svc/engine/client';
import type { Identity } from './drop-privileges.ts';

const ENGINE_MAIN = join(import.meta.dirname, '../../../engine/src/daemon/main.ts');

/**
 * tini is a subreaper: what runtimes leave behind is reaped at once, where some hosts' own init takes seconds.
 * Signals to it reach the engine, and its end is the engine's: nobody would find an engine without it to stop it.
 */
export function engineCommand(
  dataFolder: string,
  socketOwner: Identity,
  options: readonly string[],
): readonly [program: string, ...args: string[]] {
  const owner = `${socketOwner.uid}:${socketOwner.gid}`;
  const place = ['--path', dataFolder, '--socket-owner', owner, SUPERVISED];
  const engine = [process.execPath, ENGINE_MAIN, ...place, ...options];
  return ['tini', '-s', '--', 'setpriv', '--pdeathsig', 'KILL', '--', ...engine];
}
