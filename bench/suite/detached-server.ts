import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

export const SVC = resolve(import.meta.dirname, '../../svc');
const run = promisify(execFile);

/** Runs `work` with the processes of a server that `svc server start` has started: its supervisor and its engine. */
export async function whileServerRuns<T>(work: (pids: readonly number[]) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-start-'));
  try {
    await startServer(folder);
    return await work(
      await Promise.all(['server.pid', 'engine.pid'].map((name) => readPid(join(folder, name)))),
    );
  } finally {
    await stopServer(folder).catch(() => undefined);
    await removeFolders(folder);
  }
}

export async function startServer(folder: string): Promise<void> {
  await run(SVC, ['server', 'start', '--detach', '--dev', '--port', '0', '--path', folder]);
}

export async function stopServer(folder: string): Promise<void> {
  await run(SVC, ['server', 'stop', '--path', folder]);
}

async function readPid(file: string): Promise<number> {
  return Number.parseInt(await readFile(file, 'utf8'), 10);
}

/** Those that a server leaves when it stops: its data, and what it has mounted below /run. */
export async function removeFolders(folder: string): Promise<void> {
  const instance = createHash('sha256').update(folder).digest('hex').slice(0, 8);
  const runFolder = join('/run/svc', instance);
  await run('umount', ['-R', '-l', runFolder]).catch(() => undefined);
  await rm(runFolder, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
