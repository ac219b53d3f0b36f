import { execFile } from 'node:child_process';
import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { promisify } from 'node:util';

/**
 * Makes the run folder a tmpfs of its own: programs may be executed from it (the host's /run often forbids that), and what
 * a sandbox sees of it in its mount table tells nothing of the host's folders. Stays as it is when it exists.
 */
export async function prepareRunFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o711 });
  const mounts = await readFile('/proc/self/mountinfo', 'utf8');
  if (mounts.split('\n').some((line) => line.split(' ')[4] === path)) return;
  // SAFETY: the path is ours (`/run/svc/` and hex digits), given as an argument, without a shell.
  await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'mode=0711,size=1g,nosuid,nodev', 'svc', path]);
}

/** Takes it away when nothing lives in it: the namespaces and the file systems of sandboxes that run are mounts below it. */
export async function releaseRunFolder(path: string): Promise<void> {
  try {
    // SAFETY: as above; neither lazy nor forced, so the kernel refuses while anything below is in use.
    await promisify(execFile)('umount', [path]);
    await rmdir(path);
  } catch {
    // It is in use, and the next engine finds it as it is.
  }
}
