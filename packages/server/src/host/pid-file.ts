import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readProcessState } from '@svc/engine/client';

/** The entry of the server. */
export const SERVER_MAIN = join(import.meta.dirname, '..', 'main.ts');

/** Notes that this process is the server of the folder. Only the holder of the folder's lock does so. */
export async function writePid(dataFolder: string): Promise<void> {
  const path = pidPath(dataFolder);
  await writeFile(`${path}.new`, `${process.pid} ${(await readProcessState(process.pid))?.startTime}\n`, {
    mode: 0o644,
  });
  await rename(`${path}.new`, path);
}

export async function forgetPid(dataFolder: string): Promise<void> {
  await rm(pidPath(dataFolder), { force: true });
}

/** The process of the server with this data folder; undefined when it does not run. */
export async function findServer(dataFolder: string): Promise<number | undefined> {
  const [pid = '', startedAt = ''] = (await readFile(pidPath(dataFolder), 'utf8').catch(() => ''))
    .trim()
    .split(' ');
  if (!/^[1-9]\d*$/.test(pid)) return undefined;
  // One that has ended does not run, whether its parent has asked for its exit code or not.
  // SAFETY: pids are used again; together with the time that a process started they are not.
  return (await readProcessState(Number(pid)))?.startTime === startedAt ? Number(pid) : undefined;
}

/** In the data folder itself, not in the server's part of it: root writes here, so the service user must not be able to. */
export function serverLogPath(dataFolder: string): string {
  return join(dataFolder, 'server.log');
}

function pidPath(dataFolder: string): string {
  return join(dataFolder, 'server.pid');
}
