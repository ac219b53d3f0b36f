import { execFile } from 'node:child_process';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { showLine } from '@svc/contract/visible';
import { readProcessState } from '../host/process-state.ts';
import { devicesByImage } from './disk-limit.ts';

/** The error for an image that cannot be mounted or changed, because an earlier mount still exists. */
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

/** A process that has the image mounted in its namespace, or files of it open: `process 12 (sleep)`. Undefined when none is found. */
async function holderOf(image: string): Promise<string | undefined> {
  try {
    const device = devicesByImage().get(await realpath(image));
    if (device === undefined) return undefined;
    const number = (await readFile(`/sys/block/${device}/dev`, 'utf8')).trim();
    const pid = (await findMounter(number)) ?? (await findOpener((await stat(`/dev/${device}`)).rdev));
    if (pid === undefined) return undefined;
    return `process ${pid} (${showLine(readProcessState(pid)?.name ?? 'it has ended')})`;
  } catch (error) {
    // The image, or its last user, is gone.
    if (isErrno(error, 'ENOENT', 'ENODEV', 'ENXIO')) return undefined;
    throw error;
  }
}

async function findMounter(number: string): Promise<number | undefined> {
  for (const pid of (await readdir('/proc')).map(Number).filter((each) => each > 0)) {
    const table = await readFile(`/proc/${pid}/mountinfo`, 'utf8').catch(() => '');
    // The third field of a line, https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
    if (table.split('\n').some((line) => line.split(' ', 3)[2] === number)) return pid;
  }
  return undefined;
}

/** In a separate process, which can be killed: a stat on a server that does not answer blocks. */
async function findOpener(device: number): Promise<number | undefined> {
  const open = ['-name', 'cwd', '-o', '-name', 'root', '-o', '-name', 'exe', '-o', '-path', '/proc/*/fd/*'];
  const shown = ['(', ...open, ')', '-printf', '%D %p\\n', '-prune'];
  const args = [
    '-L',
    '/proc',
    '-mindepth',
    '2',
    '-maxdepth',
    '3',
    '(',
    '-name',
    'fd',
    '-o',
    ...shown,
    '-o',
    '-prune',
    ')',
  ];
  // SAFETY: no shell, and all arguments are constants.
  const found = await promisify(execFile)('find', args, SEARCH).catch((error: unknown) =>
    // `find` counts processes that end meanwhile as failures.
    error instanceof Error && 'stdout' in error ? { stdout: String(error.stdout) } : { stdout: '' },
  );
  const pid = new RegExp(`^${device} /proc/(\\d+)/`, 'm').exec(found.stdout)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

const SEARCH = {
  env: { PATH: '/usr/bin:/bin' },
  timeout: 5000,
  killSignal: 'SIGKILL',
  maxBuffer: 64 * 2 ** 20,
} as const;
