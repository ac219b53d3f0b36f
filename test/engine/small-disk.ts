import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 2 ** 20;

/** A disk of a host, small enough to be filled: an ext4 file system of its own. Disposing of it removes every trace. */
export class SmallDisk implements Disposable {
  readonly folder: string;
  readonly #place: string;

  constructor(mib: number) {
    this.#place = mkdtempSync(join(tmpdir(), 'svc-small-disk-'));
    chmodSync(this.#place, 0o711);
    this.folder = join(this.#place, 'disk');
    mkdirSync(this.folder);
    const image = join(this.#place, 'image');
    execFileSync('truncate', ['--size', `${mib}M`, image]);
    execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', image]);
    execFileSync('mount', ['-o', 'loop', image, this.folder]);
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  /** What somebody else has on the disk takes all of it but this much. */
  fill(leftBytes = 0): void {
    const bytes = this.freeBytes - leftBytes;
    const file = join(this.folder, `beside-${process.hrtime.bigint()}`);
    if (bytes > MIB) execFileSync('fallocate', ['--length', String(bytes - MIB), file]);
    if (leftBytes > 0) return;
    // The rest by writing it, but no more than that: an engine may give back ballast meanwhile.
    for (const step of [65_536, 4096]) for (let left = 2 * MIB; left > 0 && append(file, step); left -= step);
  }

  empty(): void {
    execFileSync('sh', ['-c', 'rm -f "$1"/beside-*', 'sh', this.folder]);
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
