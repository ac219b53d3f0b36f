import { execFile } from 'node:child_process';
import { chmod, chown, copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Image, Images } from '../images/images.ts';

const run = promisify(execFile);

/** The name of the image that `buildBusyboxImage` makes. */
export const BUSYBOX_IMAGE = 'svc/busybox';

/**
 * A small complete image for tests: Debian's static busybox with a link per applet in /bin, the users root, 65534 and `user` (uid 1000, /home/user),
 * /tmp with mode 1777. Made without a network in well under a second.
 */
export async function buildBusyboxImage(images: Images): Promise<Image> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-busybox-'));
  try {
    await writeBusyboxRootfs(folder);
    return await images.import(
      { type: 'folder', path: folder, config: { cmd: ['/bin/sh'] } },
      BUSYBOX_IMAGE,
      { onProgress: () => {}, signal: AbortSignal.timeout(100_000) },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The root file system of that image, for tests that need a folder. */
export async function writeBusyboxRootfs(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const name of ['bin', 'dev', 'etc', 'home', 'proc', 'root', 'run', 'sys', 'tmp', 'usr', 'var']) {
    await mkdir(join(folder, name));
  }
  await chmod(join(folder, 'tmp'), 0o1777);
  await chmod(join(folder, 'root'), 0o700);
  await mkdir(join(folder, 'home/user'));
  await chown(join(folder, 'home/user'), 1000, 1000);
  await writeFile(
    join(folder, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n',
  );
  await writeFile(join(folder, 'etc/group'), 'root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n');
  await copyFile('/bin/busybox', join(folder, 'bin/busybox'));
  await chmod(join(folder, 'bin/busybox'), 0o755);
  const { stdout } = await run('/bin/busybox', ['--list']);
  for (const applet of stdout.split('\n').filter((name) => name !== '' && name !== 'busybox')) {
    await symlink('busybox', join(folder, 'bin', applet));
  }
  // Scripts often use these absolute paths.
  await symlink('../bin', join(folder, 'usr/bin'));
}
