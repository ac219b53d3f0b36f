import { ChannelError, FileFailed } from '@svc/contract/channel';
import { onAbort } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import type { ChannelFiles, FileEntry } from '@svc/contract/channel';
import type { VolumeEntry } from '@svc/contract/orchestrator';
import type { HostSpace } from '../space/host-space.ts';
import { copyTree, keptAttributes } from './copy-tree.ts';
import { asPlatformError } from './file-errors.ts';
import type { FileAccess, FileServer } from './file-server.ts';
import { removeAnything } from './pending-writes.ts';
import type { PendingWrites } from './pending-writes.ts';
import { isTemporaryName, parseEntryPath, parseVolumePath } from './volume-path.ts';
import type { VolumeSync } from './volume-sync.ts';
import type { VolumeFiles } from './volumes.ts';

/** The limit of entries in memory, because a sandbox can make any number of files. */
const MAX_ENTRIES = 100_000;

/** Access to the files of one volume: the process that performs the operations, and the sync. */
export interface VolumeAccess {
  readonly server: FileServer;
  readonly pending: PendingWrites;
  readonly sync: VolumeSync;
  readonly space: Pick<HostSpace, 'require'>;
}

/**
 * File operations in a volume, carried out by a process whose root is the volume. So neither a link nor a race with a sandbox can lead
 * elsewhere: paths are checked here for good error messages, not for safety.
 */
export class DiskVolumeFiles implements VolumeFiles {
  /** Rejects when the volume does not exist. */
  readonly #access: () => Promise<VolumeAccess>;

  constructor(access: () => Promise<VolumeAccess>) {
    this.#access = access;
  }

  async read(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const target = agentPath(parseEntryPath(path));
    const { server } = await this.#access();
    const access = await server.acquire();
    try {
      return contentOf(access, await access.files.open(target, { read: true }, signal), path, signal);
    } catch (error) {
      access.release();
      throw asPlatformError(error, path);
    }
  }

  async write(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const parts = parseEntryPath(path);
    const target = agentPath(parts);
    await this.#fill(path, async (files, access) => {
      if (parts.length > 1) await files.mkdir(agentPath(parts.slice(0, -1)), {}, signal);
      const old = await statIfAny(files, target, signal);
      if (old?.kind === 'dir') throw new FileFailed('write: Is a directory', 'EISDIR');
      await replace(files, access, target, async (temporary) => {
        await writeNew(files, temporary, content, old, signal);
      });
    });
  }

  async list(path: string, signal: AbortSignal): Promise<readonly VolumeEntry[]> {
    const parts = parseVolumePath(path);
    return await this.#use(path, async (files) => {
      const entries: VolumeEntry[] = [];
      for await (const entry of files.readDirectory(agentPath(parts), signal)) {
        const name = nameOf(entry);
        if (isTemporaryName(name)) continue;
        if (entries.length === MAX_ENTRIES) throw tooMany();
        entries.push(volumeEntry(entry, [...parts, name].join('/')));
      }
      return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
    });
  }

  async stat(path: string, signal: AbortSignal): Promise<VolumeEntry> {
    const parts = parseVolumePath(path);
    return await this.#use(path, async (files) =>
      volumeEntry(await files.stat(agentPath(parts), { followSymlink: false }, signal), path),
    );
  }

  async mkdir(path: string, signal: AbortSignal): Promise<void> {
    const target = agentPath(parseEntryPath(path));
    await this.#use(path, async (files, { sync }) => {
      await files.mkdir(target, {}, signal);
      await sync.run();
    });
  }

  async copy(from: string, to: string, signal: AbortSignal): Promise<void> {
    const source = agentPath(parseEntryPath(from));
    const target = agentPath(parseEntryPath(to));
    if (isInside(target, source)) {
      throw new PlatformError('invalid_volume_path', 'A folder cannot be copied into itself');
    }
    await this.#fill(to, async (files, access) => {
      const entry = await this.#statSource(files, source, from, signal);
      await replace(files, access, target, (temporary) => copyTree(files, entry, temporary, signal));
    });
  }

  async rename(from: string, to: string, signal: AbortSignal): Promise<void> {
    const source = agentPath(parseEntryPath(from));
    const target = agentPath(parseEntryPath(to));
    await this.#use(to, async (files, { sync }) => {
      await this.#statSource(files, source, from, signal);
      await files.rename(source, target, signal);
      await sync.run();
    });
  }

  async remove(path: string, options: { readonly recursive: boolean }, signal: AbortSignal): Promise<void> {
    const target = agentPath(parseEntryPath(path));
    await this.#use(path, async (files, { sync }) => {
      try {
        await files.remove(target, signal);
      } catch (error) {
        if (!(error instanceof FileFailed && error.errnoName === 'EISDIR')) throw error;
        await files.removeDir(target, options, signal);
      }
      await sync.run();
    });
  }

  /** An error about a missing source names `from`, all others name `to`. */
  async #statSource(
    files: ChannelFiles,
    source: string,
    from: string,
    signal: AbortSignal,
  ): Promise<FileEntry> {
    try {
      return await files.stat(source, { followSymlink: false }, signal);
    } catch (error) {
      throw asPlatformError(error, from);
    }
  }

  /** Runs an operation that takes space. */
  async #fill(
    path: string,
    task: (files: ChannelFiles, access: VolumeAccess) => Promise<void>,
  ): Promise<void> {
    const { space } = await this.#access();
    space.require();
    await this.#use(path, task);
  }

  async #use<T>(path: string, task: (files: ChannelFiles, access: VolumeAccess) => Promise<T>): Promise<T> {
    const volume = await this.#access();
    const access = await volume.server.acquire();
    try {
      return await task(access.files, volume);
    } catch (error) {
      const failure = asPlatformError(error, path);
      // A full host is a different error than a full volume.
      if (PlatformError.is(failure, 'disk_full')) volume.space.require();
      throw failure;
    } finally {
      access.release();
    }
  }
}

/** Makes a file or folder under a temporary name and renames it in one step, so that it is never visible half made. */
async function replace(
  files: ChannelFiles,
  { pending, sync }: VolumeAccess,
  target: string,
  make: (temporary: string) => Promise<void>,
): Promise<void> {
  const { temporary, note } = await pending.begin(target.slice(0, target.lastIndexOf('/')) || '/');
  try {
    await make(temporary);
    // On disk before the rename: after a crash of the host the name refers to the old or the new content, never to a part.
    await sync.run();
    await files.rename(temporary, target);
  } catch (error) {
    await discard(files, pending, temporary, note);
    throw error;
  }
  await pending.end(note);
  await sync.run();
}

async function discard(
  files: ChannelFiles,
  pending: PendingWrites,
  temporary: string,
  note: string,
): Promise<void> {
  try {
    await removeAnything(files, temporary);
    await pending.end(note);
  } catch (error) {
    // The first error is reported; the note stays, so the next file server removes the leftovers.
    pending.giveUp(note);
    if (!(error instanceof ChannelError || error instanceof FileFailed)) throw error;
  }
}

async function writeNew(
  files: ChannelFiles,
  temporary: string,
  content: AsyncIterable<Uint8Array>,
  old: FileEntry | undefined,
  signal: AbortSignal,
): Promise<void> {
  const handle = await files.open(temporary, { write: true, createNew: true, mode: 0o644 }, signal);
  try {
    await files.write(handle, 0, content, signal);
    if (old?.kind === 'file') await files.fsetstat(handle, keptAttributes(old), signal);
  } finally {
    files.release(handle);
  }
}

async function statIfAny(
  files: ChannelFiles,
  target: string,
  signal: AbortSignal,
): Promise<FileEntry | undefined> {
  try {
    return await files.stat(target, { followSymlink: false }, signal);
  } catch (error) {
    if (error instanceof FileFailed && error.errnoName === 'ENOENT') return undefined;
    throw error;
  }
}

/** Releases the access when the content was read, the reader stopped, or the signal aborted. */
function contentOf(
  access: FileAccess,
  handle: number,
  path: string,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  let isOver = false;
  let stop = (): void => undefined;
  const finish = (): void => {
    if (isOver) return;
    isOver = true;
    stop();
    access.files.release(handle);
    access.release();
  };
  stop = onAbort(signal, finish);
  return {
    async *[Symbol.asyncIterator]() {
      try {
        yield* access.files.readHandle(handle, signal);
      } catch (error) {
        throw asPlatformError(error, path);
      } finally {
        finish();
      }
    },
  };
}

function agentPath(parts: readonly string[]): string {
  return `/${parts.join('/')}`;
}

function isInside(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}

function nameOf(entry: FileEntry): string {
  return entry.path.slice(entry.path.lastIndexOf('/') + 1);
}

function volumeEntry(entry: FileEntry, path: string): VolumeEntry {
  return {
    path,
    kind: entry.kind === 'dir' ? 'directory' : entry.kind,
    size: entry.size,
    mode: entry.mode & 0o7777,
    uid: entry.uid,
    gid: entry.gid,
    modifiedAt: timestamp(entry.modifiedSeconds),
    accessedAt: timestamp(entry.accessedSeconds),
  };
}

/** Null for times that no calendar has; sandboxes can set any value. */
function timestamp(seconds: number | null): string | null {
  if (seconds === null || Math.abs(seconds) > 8.64e12) return null;
  return new Date(seconds * 1000).toISOString();
}

function tooMany(): PlatformError {
  return new PlatformError(
    'payload_too_large',
    `The folder has more than ${MAX_ENTRIES} entries; list its subfolders or use a sandbox`,
  );
}
