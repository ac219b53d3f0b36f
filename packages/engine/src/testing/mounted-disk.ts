import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { deviceOf } from '../space/disk-limit.ts';
import type { MountedDisk } from '../space/watched-disk.ts';

/** An ext4 image of 64 MiB on a loop device, like disks of sandboxes. */
export function mountDisk(t: TestContext): {
  readonly disk: MountedDisk;
  /** Resolves when all writes are on the host's disk. */
  readonly settle: () => void;
  readonly unmount: () => void;
} {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mounted-disk-'));
  const image = join(folder, 'image');
  const mountPoint = join(folder, 'mount');
  mkdirSync(mountPoint);
  // SAFETY: no shell; the paths are mkdtemp's.
  const run = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const unmount = () => run('umount', mountPoint);
  run('truncate', '-s', '64M', image);
  run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0', image);
  run('mount', '-o', 'loop', image, mountPoint);
  t.after(() => {
    try {
      unmount();
    } catch {
      // The test has unmounted it.
    }
    rmSync(folder, { recursive: true });
  });
  const settle = () => {
    run('sync', '--file-system', mountPoint);
    run('sync', '--file-system', image);
  };
  const disk = { kind: 'sandbox', key: 'one', image, mountPoint, device: deviceOf(mountPoint) } as const;
  return { disk, settle, unmount };
}
