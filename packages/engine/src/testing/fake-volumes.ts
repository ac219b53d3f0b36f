import { createHash, randomUUID } from 'node:crypto';
import { cp, lstat, mkdir, open, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { FileFailed } from '@svc/contract/channel';
import { PlatformError } from '@svc/contract/errors';
import type { Volume, VolumeEntry, VolumeUsage } from '@svc/contract/orchestrator';
import { asPlatformError } from '../volumes/file-errors.ts';
import { parseEntryPath, parseVolumePath } from '../volumes/volume-path.ts';
import type { VolumeFiles, Volumes } from '../volumes/volumes.ts';

const MIB = 1024 * 1024;

/**
 * Volumes as plain folders for tests without privileges. It keeps the promises of the port with two exceptions: direct writes of a guest to
 * the folder are not limited, and a race with swapped links is not prevented.
 */
export class FakeVolumes implements Volumes {
  readonly #folder: string;
  readonly #volumes = new Map<string, Volume>();
  readonly #holders = new Map<string, Set<string>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async recover(holders: ReadonlyMap<string, readonly string[]>): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    for (const name of await readdir(this.#folder)) {
      if (!name.endsWith('.json')) continue;
      const volume = JSON.parse(await readFile(join(this.#folder, name), 'utf8')) as Volume;
      this.#volumes.set(volume.id, volume);
      this.#holders.set(volume.id, new Set(holders.get(volume.id)));
    }
  }

  async create(id: string, capacityMib: number): Promise<Volume> {
    checkCapacity(capacityMib);
    const existing = this.#volumes.get(id);
    if (existing?.capacityMib === capacityMib) return existing;
    if (existing) throw new PlatformError('name_already_exists', 'The volume exists with another capacity');
    await mkdir(this.#rootOf(id), { recursive: true });
    return await this.#save({ id, capacityMib, createdAt: new Date().toISOString() });
  }

  async resize(id: string, capacityMib: number): Promise<Volume> {
    checkCapacity(capacityMib);
    const volume = this.#require(id);
    if ((await sizeOf(this.#rootOf(id))) > capacityMib * MIB) {
      throw new PlatformError('invalid_request', 'The files of the volume need more than that');
    }
    return await this.#save({ ...volume, capacityMib });
  }

  async get(id: string): Promise<Volume | undefined> {
    return this.#volumes.get(id);
  }

  async list(): Promise<readonly Volume[]> {
    return [...this.#volumes.values()];
  }

  async usage(id: string): Promise<VolumeUsage> {
    const { capacityMib } = this.#require(id);
    return { usedBytes: await sizeOf(this.#rootOf(id)), capacityBytes: capacityMib * MIB };
  }

  async storedBytes(id: string): Promise<number> {
    return this.#volumes.has(id) ? await sizeOf(this.#rootOf(id)) : 0;
  }

  async remove(id: string): Promise<void> {
    if (!this.#volumes.has(id)) return;
    if ((this.#holders.get(id)?.size ?? 0) > 0) {
      throw new PlatformError('volume_in_use', 'The volume is used by a sandbox');
    }
    this.#volumes.delete(id);
    await rm(this.#recordOf(id));
    await rm(this.#rootOf(id), { recursive: true });
  }

  async attach(id: string, holder: string): Promise<string> {
    this.#require(id);
    this.#holders.set(id, new Set([...(this.#holders.get(id) ?? []), holder]));
    return this.#rootOf(id);
  }

  async detach(id: string, holder: string): Promise<void> {
    this.#holders.get(id)?.delete(holder);
  }

  files(id: string): VolumeFiles {
    return new FakeVolumeFiles(this.#rootOf(id), () => this.#require(id).capacityMib * MIB);
  }

  async close(): Promise<void> {
    // Nothing is held.
  }

  #require(id: string): Volume {
    const volume = this.#volumes.get(id);
    if (volume === undefined) throw new PlatformError('volume_not_found', 'There is no such volume');
    return volume;
  }

  async #save(volume: Volume): Promise<Volume> {
    await writeFile(this.#recordOf(volume.id), JSON.stringify(volume));
    this.#volumes.set(volume.id, volume);
    return volume;
  }

  // SAFETY: the digest of the caller's id is harmless in a file name.
  #rootOf(id: string): string {
    return join(this.#folder, createHash('sha256').update(id).digest('hex'));
  }

  #recordOf(id: string): string {
    return `${this.#rootOf(id)}.json`;
  }
}

class FakeVolumeFiles implements VolumeFiles {
  readonly #root: string;
  readonly #capacityBytes: () => number;

  constructor(root: string, capacityBytes: () => number) {
    this.#root = root;
    this.#capacityBytes = capacityBytes;
  }

  async read(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return await this.#run(path, async () => {
      const file = await realpath(await this.#locate(parseEntryPath(path)));
      this.#requireInside(file);
      if ((await lstat(file)).isDirectory()) throw new FileFailed('', 'EISDIR');
      return (await open(file)).createReadStream({ signal });
    });
  }

  async write(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    await this.#run(path, async () => {
      const target = await this.#locate(parseEntryPath(path), { makeParents: true });
      if (await isFolder(target)) throw new FileFailed('', 'EISDIR');
      const room = this.#capacityBytes() - (await sizeOf(this.#root));
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of content) {
        signal.throwIfAborted();
        length += chunk.length;
        if (length > room) throw new FileFailed('', 'ENOSPC');
        chunks.push(chunk);
      }
      signal.throwIfAborted();
      const temporary = join(this.#root, '..', randomUUID());
      await writeFile(temporary, Buffer.concat(chunks));
      await rename(temporary, target);
    });
  }

  async list(path: string): Promise<readonly VolumeEntry[]> {
    return await this.#run(path, async () => {
      const folder = await this.#locate(parseVolumePath(path));
      const names = (await readdir(folder)).sort();
      return await Promise.all(
        names.map((name) => entryOf(join(folder, name), path === '' ? name : `${path}/${name}`)),
      );
    });
  }

  async stat(path: string): Promise<VolumeEntry> {
    return await this.#run(path, async () => entryOf(await this.#locate(parseVolumePath(path)), path));
  }

  async mkdir(path: string): Promise<void> {
    await this.#run(path, async () => {
      await mkdir(await this.#locate(parseEntryPath(path), { makeParents: true }), { recursive: true });
    });
  }

  async copy(from: string, to: string): Promise<void> {
    if (to.startsWith(`${from}/`))
      throw new PlatformError('invalid_volume_path', 'A folder cannot contain itself');
    await this.#move(from, to, async (source, target) => {
      if ((await sizeOf(source)) > this.#capacityBytes() - (await sizeOf(this.#root)))
        throw new FileFailed('', 'ENOSPC');
      await cp(source, target, { recursive: true, verbatimSymlinks: true });
    });
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#move(from, to, rename);
  }

  async remove(path: string, options: { readonly recursive: boolean }): Promise<void> {
    await this.#run(path, async () => {
      const target = await this.#locate(parseEntryPath(path));
      if (!options.recursive && (await isFolder(target)) && (await readdir(target)).length > 0) {
        throw new FileFailed('', 'ENOTEMPTY');
      }
      await lstat(target);
      await rm(target, { recursive: true });
    });
  }

  async #move(
    from: string,
    to: string,
    act: (source: string, target: string) => Promise<void>,
  ): Promise<void> {
    const [fromParts, toParts] = [parseEntryPath(from), parseEntryPath(to)];
    const source = await this.#run(from, async () => {
      const path = await this.#locate(fromParts);
      await lstat(path);
      return path;
    });
    await this.#run(to, async () => act(source, await this.#locate(toParts)));
  }

  /** The path on the host; checks that its folder resolves to one inside. */
  async #locate(parts: readonly string[], options: { makeParents?: boolean } = {}): Promise<string> {
    if (parts.length === 0) return this.#root;
    const path = join(this.#root, ...parts);
    if (options.makeParents === true) await mkdir(dirname(path), { recursive: true });
    const folder = await realpath(dirname(path));
    this.#requireInside(folder);
    return join(folder, basename(path));
  }

  #requireInside(path: string): void {
    if (path !== this.#root && !path.startsWith(`${this.#root}/`)) throw new FileFailed('', 'ENOENT');
  }

  async #run<T>(path: string, task: () => Promise<T>): Promise<T> {
    this.#capacityBytes();
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || PlatformError.is(error))
        throw asPlatformError(error, path);
      throw asPlatformError(new FileFailed(error.message, String(error.code)), path);
    }
  }
}

async function entryOf(path: string, volumePath: string): Promise<VolumeEntry> {
  const found = await lstat(path);
  const kinds = [
    [found.isFile(), 'file'],
    [found.isDirectory(), 'directory'],
    [found.isSymbolicLink(), 'symlink'],
  ] as const;
  return {
    path: volumePath,
    kind: kinds.find(([is]) => is)?.[1] ?? 'other',
    size: found.size,
    mode: found.mode & 0o7777,
    uid: found.uid,
    gid: found.gid,
    modifiedAt: found.mtime.toISOString(),
    accessedAt: found.atime.toISOString(),
  };
}

async function isFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isDirectory() ?? false;
}

async function sizeOf(root: string): Promise<number> {
  if (!(await isFolder(root))) return (await lstat(root)).size;
  let bytes = 0;
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await lstat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}

function checkCapacity(capacityMib: number): void {
  if (!Number.isInteger(capacityMib) || capacityMib < 1) {
    throw new PlatformError('invalid_request', 'A volume has at least 1 MiB');
  }
}
