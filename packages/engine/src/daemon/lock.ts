import { rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { pid } from 'node:process';
import { PlatformError } from '@svc/contract/errors';
import { untilListening } from '@svc/contract/node-listen';
import { describeLockHolder } from '../host/lock-holder.ts';

/**
 * Makes this process the only engine on its data folder. The lock is an abstract unix socket: the kernel frees it when the
 * process ends, also after a crash.
 */
export async function lockDataFolder(instance: string, dataFolder: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  const name = `svc-engine-${instance}`;
  server.listen(`\0${name}`);
  try {
    await untilListening(server);
  } catch (error) {
    const lockHolder = describeLockHolder(name, dataFolder);
    const message =
      lockHolder === undefined
        ? `an engine is already running on ${dataFolder}; \`svc engine status\` shows it`
        : `no engine can start on ${dataFolder}: ${lockHolder}`;
    throw new PlatformError('invalid_state_transition', message, { cause: error });
  }
  return server.unref();
}

/** Writes the pid file that `svc engine stop` reads. Only the holder of the lock does so. */
export async function notePid(dataFolder: string): Promise<void> {
  const path = pidPath(dataFolder);
  await writeFile(`${path}.new`, `${pid}\n`, { mode: 0o644 });
  await rename(`${path}.new`, path);
}

export async function forgetPid(dataFolder: string): Promise<void> {
  await rm(pidPath(dataFolder), { force: true });
}

function pidPath(dataFolder: string): string {
  return join(dataFolder, 'engine.pid');
}
