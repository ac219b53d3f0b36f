import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programFile } from '@svc/contract/node-program';
import { readProcessState } from '@svc/engine/client';

/** The entry file of the server. */
export const SERVER_MAIN = programFile(import.meta.url, {
  built: '../../build/main.js',
  source: '../main.ts',
});

/** Stores this process as the server of the folder. Only the holder of the folder's lock does so. */
export async function writePid(dataFolder: string): Promise<void> {
  await noteProcess(pidPath(dataFolder), process.pid);
}

/** Stores the pid of the web-facing process, for a later supervisor that has lost it. `pid` undefined: it could not be started. */
export async function noteWeb(dataFolder: string, pid: number | undefined): Promise<void> {
  if (pid !== undefined) await noteProcess(webPath(dataFolder), pid);
}

export async function forgetPid(dataFolder: string): Promise<void> {
  for (const path of [pidPath(dataFolder), webPath(dataFolder)]) await rm(path, { force: true });
}

/** The process of the server with this data folder; undefined when it does not run. */
export async function findServer(dataFolder: string): Promise<number | undefined> {
  return await findProcess(pidPath(dataFolder));
}

/** The web-facing process that was stored last; undefined when it does not run. */
export async function findWeb(dataFolder: string): Promise<number | undefined> {
  return await findProcess(webPath(dataFolder));
}

async function noteProcess(path: string, pid: number): Promise<void> {
  await writeFile(`${path}.new`, `${pid} ${readProcessState(pid)?.startTime}\n`, { mode: 0o644 });
  await rename(`${path}.new`, path);
}

async function findProcess(path: string): Promise<number | undefined> {
  const [pid = '', startedAt = ''] = (await readFile(path, 'utf8').catch(() => '')).trim().split(' ');
  if (!/^[1-9]\d*$/.test(pid)) return undefined;
  // A process that has ended does not run, whether its parent has collected its exit code or not.
  // SAFETY: pids are reused; a pid together with its start time is not.
  return readProcessState(Number(pid))?.startTime === startedAt ? Number(pid) : undefined;
}

/** In the data folder itself, not in the server's part of it: root writes here, so the service user must not be able to. */
export function serverLogPath(dataFolder: string): string {
  return join(dataFolder, 'server.log');
}

function pidPath(dataFolder: string): string {
  return join(dataFolder, 'server.pid');
}

/** SAFETY: in root's folder, because the process that it names may be killed. */
function webPath(dataFolder: string): string {
  return join(dataFolder, 'web.pid');
}
