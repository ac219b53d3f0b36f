import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import { showLine } from '@svc/contract/visible';
import { readProcessState } from '../host/process-state.ts';
import { devicesByImage } from './disk-limit.ts';

/** The error for an image that cannot be mounted or changed, because its last mount is still alive somewhere. */
export async function heldImage(
  what: 'disk' | 'volume',
  image: string,
  cause: unknown,
): Promise<PlatformError> {
  const holder = await holderOf(image);
  const message =
    holder === undefined
      ? `The ${what} is still in use by its last run; try again later`
      : `The ${what} is held by ${holder} on the host; end that program, then try again`;
  return new PlatformError('unavailable', message, { cause });
}

/** One process that has the image mounted in its namespace, or files of it open: `process 12 (sleep)`. */
async function holderOf(image: string): Promise<string | undefined> {
  const device = devicesByImage().get(await realpath(image));
  if (device === undefined) return undefined;
  const [number, { rdev }] = await Promise.all([
    readFile(`/sys/block/${device}/dev`, 'utf8'),
    stat(`/dev/${device}`),
  ]);
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  for (const holds of [
    (pid: number) => hasMounted(pid, number.trim()),
    (pid: number) => hasOpen(pid, rdev),
  ]) {
    for (const pid of pids) {
      if (await holds(pid))
        return `process ${pid} (${showLine(readProcessState(pid)?.name ?? 'it has ended')})`;
    }
  }
  return undefined;
}

async function hasMounted(pid: number, number: string): Promise<boolean> {
  // The third field of a line, https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
  const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
  return table.split('\n').some((line) => line.split(' ', 3)[2] === number);
}

async function hasOpen(pid: number, device: number): Promise<boolean> {
  const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
  for (const name of ['cwd', 'root', 'exe', ...files.map((file) => `fd/${file}`)]) {
    const found = await stat(`/proc/${pid}/${name}`).catch(() => undefined);
    if (found?.dev === device || found?.rdev === device) return true;
  }
  return false;
}
