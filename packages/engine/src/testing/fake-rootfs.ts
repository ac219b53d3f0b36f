import { execFile } from 'node:child_process';
import { cp, lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Slot } from '../network/network.ts';
import type { DiskUsage, Rootfs } from '../rootfs/rootfs.ts';

const run = promisify(execFile);
const HANDLE = /^[a-z0-9]{8,32}$/;

/**
 * A root file system of plain folders: no mounts, no privileges, same behaviour as long as guests write through `writeAsGuest`,
 * which enforces the capacity. A disk is a folder with a file `size` and, once it was mounted, `tree`; while mounted the tree is
 * under `mounts`.
 */
export class FakeRootfs implements Rootfs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async recover(keep: readonly string[]): Promise<void> {
    for (const kind of ['disks', 'mounts'] as const) {
      await mkdir(join(this.#folder, kind), { recursive: true });
      for (const name of await readdir(join(this.#folder, kind))) {
        if (!keep.includes(name)) await rm(this.#place(kind, name), { recursive: true, force: true });
      }
    }
  }

  async createDisk(handle: string, sizeMib: number, signal: AbortSignal): Promise<void> {
    const disk = this.#place('disks', handle);
    checkSize(sizeMib);
    signal.throwIfAborted();
    await mkdir(disk);
    await writeFile(join(disk, 'size'), String(sizeMib * 2 ** 20));
  }

  /** A saved disk is an archive. */
  async saveDisk(handle: string, file: string, signal: AbortSignal): Promise<void> {
    const disk = this.#place('disks', handle);
    signal.throwIfAborted();
    await readFile(join(disk, 'size'));
    await run('tar', ['-cf', file, '-C', disk, '.']);
  }

  async copyLiveDisk(handle: string, file: string, signal: AbortSignal): Promise<number> {
    const disk = this.#place('disks', handle);
    const tree = this.#place('mounts', handle);
    signal.throwIfAborted();
    if (!existsSync(tree)) throw new Error(`the disk ${handle} is not mounted`);
    await run('tar', [
      '-cf',
      file,
      `--transform=s,^${handle},tree,`,
      '-C',
      disk,
      'size',
      '-C',
      dirname(tree),
      handle,
    ]);
    return 0;
  }

  async settleCopy(file: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await readFile(file);
  }

  async restoreDisk(handle: string, file: string, sizeMib: number, signal: AbortSignal): Promise<void> {
    const disk = this.#place('disks', handle);
    checkSize(sizeMib);
    signal.throwIfAborted();
    await readFile(file);
    await mkdir(disk);
    await run('tar', ['-xf', file, '-C', disk]);
    const sizeBytes = Number(await readFile(join(disk, 'size'), 'utf8'));
    await writeFile(join(disk, 'size'), String(Math.max(sizeBytes, sizeMib * 2 ** 20)));
  }

  async mount(handle: string, layers: readonly string[], _slot: Slot, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const tree = join(this.#place('disks', handle), 'tree');
    const target = this.#place('mounts', handle);
    await readFile(join(this.#place('disks', handle), 'size'));
    if (!existsSync(tree)) {
      await mkdir(tree);
      for (const layer of layers) await applyLayer(layer, tree);
    }
    await rename(tree, target);
    return target;
  }

  async unmount(handle: string): Promise<void> {
    const target = this.#place('mounts', handle);
    if (existsSync(target)) await rename(target, join(this.#place('disks', handle), 'tree'));
  }

  async removeDisk(handle: string): Promise<void> {
    await rm(this.#place('disks', handle), { recursive: true, force: true });
  }

  usage(handle: string): DiskUsage | undefined {
    const target = this.#place('mounts', handle);
    if (!existsSync(target)) return undefined;
    const totalBytes = Number(readFileSync(join(this.#place('disks', handle), 'size'), 'utf8'));
    return { usedBytes: sizeOf(target), totalBytes };
  }

  storedBytes(handle: string): number {
    const places = [this.#place('disks', handle), this.#place('mounts', handle)];
    return places.filter(existsSync).reduce((sum, place) => sum + sizeOf(place), 0);
  }

  async close(): Promise<void> {}

  /** Writes as a process in the sandbox would, ENOSPC included. */
  async writeAsGuest(handle: string, path: string, content: string | Uint8Array): Promise<void> {
    const usage = this.usage(handle);
    if (usage === undefined) throw new Error(`disk ${handle} is not mounted`);
    const file = join(this.#place('mounts', handle), path);
    const replacedBytes = existsSync(file) ? lstatSync(file).size : 0;
    if (usage.usedBytes - replacedBytes + Buffer.byteLength(content) > usage.totalBytes) {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    }
    await writeFile(file, content);
  }

  /** The current disks and mounts. */
  async leftovers(): Promise<readonly string[]> {
    const kinds = ['disks', 'mounts'].map(async (kind) => {
      const names = await readdir(join(this.#folder, kind));
      return names.map((name) => `${kind}/${name}`);
    });
    return (await Promise.all(kinds)).flat();
  }

  #place(kind: 'disks' | 'mounts', handle: string): string {
    // SAFETY: a handle that matches has no slash or dot, so the joined path stays inside our folder.
    if (!HANDLE.test(handle)) throw new Error(`not a disk handle: ${JSON.stringify(handle)}`);
    return join(this.#folder, kind, handle);
  }
}

function checkSize(sizeMib: number): void {
  if (!Number.isSafeInteger(sizeMib) || sizeMib < 1) throw new Error(`not a disk size: ${sizeMib} MiB`);
}

/** Applies `layer` to `tree`. A character device is a whiteout: it hides the entries of lower layers with its name. */
async function applyLayer(layer: string, tree: string): Promise<void> {
  for (const name of await readdir(layer)) {
    const from = join(layer, name);
    const to = join(tree, name);
    const status = await lstat(from);
    if (status.isDirectory()) {
      const isMerged = existsSync(to) && lstatSync(to).isDirectory();
      if (!isMerged) await rm(to, { force: true });
      await mkdir(to, { recursive: true });
      await applyLayer(from, to);
    } else {
      await rm(to, { recursive: true, force: true });
      if (!status.isCharacterDevice()) await cp(from, to, { verbatimSymlinks: true });
    }
  }
}

function sizeOf(path: string): number {
  const status = lstatSync(path);
  if (!status.isDirectory()) return status.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
