import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const MIB = 2 ** 20;

/** A disk of a host, small enough to be filled: an ext4 file system of its own. Disposing of it removes every trace. */
export class SmallDisk implements Disposable {
  readonly folder: string;
  readonly #place: string;
  #hasFailed = false;

  constructor(mib: number, options: { readonly inodes?: number } = {}) {
    this.#place = mkdtempSync(join(tmpdir(), 'svc-small-disk-'));
    chmodSync(this.#place, 0o711);
    this.folder = join(this.#place, 'disk');
    mkdirSync(this.folder);
    execFileSync('truncate', ['--size', `${mib}M`, this.#image]);
    const inodes = options.inodes === undefined ? [] : ['-N', String(options.inodes)];
    execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', ...inodes, this.#image]);
    this.#mount();
  }

  /** As when its device fails: ext4 meets an error, and takes no writes until it is mounted again. */
  fail(): void {
    const device = execFileSync('findmnt', ['-no', 'SOURCE', this.folder], { encoding: 'utf8' }).trim();
    writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, '1');
    this.#hasFailed = true;
  }

  /** As after a restart of the host: it is checked, and mounted anew. What still holds the failed one open keeps that. */
  repair(): void {
    if (!this.#hasFailed) return;
    this.#hasFailed = false;
    execFileSync('umount', ['-l', this.folder]);
    // 1: errors were corrected.
    execFileSync('sh', ['-c', 'e2fsck -fy "$1" >&2 || [ $? = 1 ]', 'sh', this.#image], { stdio: 'ignore' });
    this.#mount();
  }

  /** On a loop device of its own: mount would take the one that a failed disk still has. */
  #mount(): void {
    const args = ['--find', '--show', this.#image];
    const device = execFileSync('losetup', args, { encoding: 'utf8' }).trim();
    execFileSync('mount', ['-o', 'errors=remount-ro', device, this.folder]);
    // From now on it goes with its last mount.
    execFileSync('losetup', ['--detach', device]);
  }

  get #image(): string {
    return join(this.#place, 'image');
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  /** Fills the disk but for this much. */
  fill(leftBytes = 0): void {
    const bytes = this.freeBytes - leftBytes;
    const file = join(this.folder, `beside-${process.hrtime.bigint()}`);
    if (bytes > MIB) execFileSync('fallocate', ['--length', String(bytes - MIB), file]);
    if (leftBytes > 0) return;
    // The rest by writing it, but no more than that: an engine may give back ballast meanwhile.
    for (const step of [65_536, 4096]) for (let left = 2 * MIB; left > 0 && append(file, step); left -= step);
  }

  /** As many empty files as it takes that there can be no other. */
  fillInodes(): void {
    const folder = join(this.folder, 'beside-files');
    mkdirSync(folder, { recursive: true });
    const isTaken = (name: string) => append(join(folder, name), 0);
    for (let number = 0; isTaken(`file-${number}`); number++);
  }

  empty(): void {
    execFileSync('sh', ['-c', 'rm -rf "$1"/beside-*', 'sh', this.folder]);
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['-l', this.folder]);
    rmSync(this.#place, { recursive: true });
  }
}

function append(file: string, bytes: number): boolean {
  try {
    writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' });
    return true;
  } catch {
    return false;
  }
}
