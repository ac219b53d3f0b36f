import type { ChannelFiles } from '@svc/contract/channel';
import { hostSource, volumesOf, type MountKit } from './prepare-mounts.ts';
import type { EngineRecord } from './record.ts';

/** Reads host folders through a process that is confined to them, so no symlink inside leads out. */
export interface HostFiles extends MountKit {
  /** Files of a host folder, seen as the root of a file system of its own. The caller ends it with `close`. */
  readonly openFolder: (
    folder: string,
    signal: AbortSignal,
  ) => Promise<{ readonly files: ChannelFiles; readonly close: () => void }>;
}

interface Target {
  readonly files: ChannelFiles;
  readonly path: string;
}

/** Copies a file or a tree of the host into the sandbox: content and modes; symlinks as they are. */
export async function copyFromHost(
  kit: HostFiles,
  record: EngineRecord,
  source: string,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const place = await hostSource(kit, record, source, signal);
  await using undo = new AsyncDisposableStack();
  if (place.isVolume) undo.defer(() => releaseHostVolume(kit, record));
  const folder = await kit.openFolder(place.root, signal);
  undo.defer(() => folder.close());
  await copyEntry(folder.files, `/${place.path}`, target, signal);
}

/** Releases the volume after the copy, unless the sandbox has it mounted too. */
async function releaseHostVolume(kit: HostFiles, record: EngineRecord): Promise<void> {
  if (record.hostVolume === null || volumesOf(record).includes(record.hostVolume)) return;
  await kit.volumes.detach(record.hostVolume, record.handle);
}

async function copyEntry(
  from: ChannelFiles,
  path: string,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const entry = await from.stat(path, { followSymlink: false }, signal);
  if (entry.kind === 'symlink') {
    return await target.files.symlink(await from.readLink(path, signal), target.path, signal);
  }
  if (entry.kind === 'dir') {
    await target.files.mkdir(target.path, {}, signal);
    for await (const child of from.readDirectory(path, signal)) {
      const name = child.path.slice(child.path.lastIndexOf('/') + 1);
      await copyEntry(
        from,
        `${path}/${name}`,
        { files: target.files, path: `${target.path}/${name}` },
        signal,
      );
    }
  } else if (entry.kind === 'file') {
    await target.files.writeFile(target.path, from.readStream(path, signal), {}, signal);
  } else {
    throw new Error(`${path} is neither a file nor a folder`);
  }
  return await target.files.setStat(target.path, { mode: entry.mode & 0o7777 }, {}, signal);
}
