import { execFile } from 'node:child_process';
import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { promisify } from 'node:util';

/**
 * Mounts a tmpfs as run folder: programs may be executed from it (the host's /run is often noexec), and its entry in the mount table of a
 * sandbox shows none of the host's folders. An existing mount is kept.
 */
export async function prepareRunFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o711 });
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  if (mounts.split('\n').some((line) => line.split(' ')[4] === path)) return;
  // SAFETY: the path is ours (`/run/svc/` and hex digits), passed as an argument, without a shell.
  await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'mode=0711,size=1g,nosuid,nodev', 'svc', path]);
}

/** Unmounts it when it is unused: the namespaces and the file systems of running sandboxes are mounts below it. */
export async function releaseRunFolder(path: string): Promise<void> {
  try {
    // SAFETY: as above; neither lazy nor forced, so the kernel refuses while a mount below is in use.
    await promisify(execFile)('umount', [path]);
    await rmdir(path);
  } catch {
    // In use: the next engine takes it over.
  }
}
