import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The entry of the server. */
export const SERVER_MAIN = join(import.meta.dirname, '..', 'main.ts');

/** Notes that this process is the server of the folder. Only the holder of the folder's lock does so. */
export async function writePid(dataFolder: string): Promise<void> {
  const path = pidPath(dataFolder);
  await writeFile(`${path}.new`, `${process.pid} ${await startTime(process.pid)}\n`, { mode: 0o644 });
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
  // SAFETY: pids are used again; together with the time that a process started they are not.
  return (await startTime(Number(pid))) === startedAt ? Number(pid) : undefined;
}

/** In the data folder itself, not in the server's part of it: root writes here, so the service user must not be able to. */
export function serverLogPath(dataFolder: string): string {
  return join(dataFolder, 'server.log');
}

function pidPath(dataFolder: string): string {
  return join(dataFolder, 'server.pid');
}

/** In clock ticks since boot (proc(5), field 22 of stat); undefined when there is no such process. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The second field is the program's name in parentheses and may hold anything.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}
