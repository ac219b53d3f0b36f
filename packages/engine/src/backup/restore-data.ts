import { chmod, mkdir, open, rename, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { DEFAULT_IMAGE_LIMITS } from '../images/image-limits.ts';
import { unpackLayer } from '../images/unpack-layer.ts';
import { newHandle } from '../sandboxes/record.ts';
import { RecordFiles } from '../sandboxes/record-files.ts';
import type { ArchiveHead, Piece, PieceData } from './archive-format.ts';
import { ArchiveReader, refused, type Source } from './read-archive.ts';
import { kindOfPath } from './saved-paths.ts';

/** The largest file of ext4. */
const MAX_FILE_BYTES = 16 * 2 ** 40;

export interface RestoreOptions {
  /** An empty private folder. After a failure the caller removes its contents. */
  readonly folder: string;
  /** Files of the server that an archive may hold besides those of the engine, by path. */
  readonly serverFiles: readonly string[];
  readonly onPiece: (path: string) => void;
  readonly signal: AbortSignal;
}

/** Writes all of an archive into a folder. Returns only when every checksum matched. */
export async function restoreData(source: Source, options: RestoreOptions): Promise<ArchiveHead> {
  const { folder, serverFiles, onPiece, signal } = options;
  const reader = new ArchiveReader(source);
  const head = await reader.head();
  for await (const piece of reader.pieces()) {
    signal.throwIfAborted();
    const kind = serverFiles.includes(piece.path) ? 'file' : kindOfPath(piece.path);
    if (kind === null)
      throw refused(`it holds ${JSON.stringify(piece.path.slice(0, 100))}, which is no file of svc`);
    onPiece(piece.path);
    await prepareFolder(folder, piece.path);
    if (kind === 'layer') await restoreLayer(join(folder, piece.path), piece, signal);
    else await restoreFile(join(folder, piece.path), piece);
  }
  await renewHandles(folder);
  return head;
}

/**
 * Gives sandboxes new handles. The sandboxes that the backup was made of may run on this machine: an engine that found their handles in
 * its own records would kill their processes as its own leftovers.
 */
async function renewHandles(folder: string): Promise<void> {
  const sandboxes = join(folder, 'sandboxes');
  const hasSandboxes = await stat(sandboxes).then(
    () => true,
    () => false,
  );
  if (!hasSandboxes) return;
  const records = new RecordFiles(sandboxes);
  const broken = () => {
    throw refused('a record of a sandbox in it is damaged');
  };
  for (const record of await records.readAll(broken)) {
    const handle = newHandle();
    const diskOf = (name: string) => join(folder, 'rootfs/disks', `${name}.img`);
    try {
      await rename(records.folderOf(record.handle), records.folderOf(handle));
      await rename(diskOf(record.handle), diskOf(handle));
    } catch (error) {
      if (isErrno(error, 'ENOENT')) throw refused('a sandbox in it is not whole');
      throw error;
    }
    await records.write({ ...record, handle }, { durable: false });
  }
}

/** SAFETY: the path is one of those in `saved-paths.ts`, or the server's; all of them lie in folders that are made here with mode 0700. */
async function prepareFolder(folder: string, path: string): Promise<void> {
  const inner = dirname(join(folder, path));
  await mkdir(inner, { recursive: true, mode: 0o700 });
  // The folder in which the engine keeps uploads in progress.
  if (path.endsWith('/image.ext4')) await mkdir(join(inner, 'writing'), { recursive: true, mode: 0o700 });
}

async function restoreFile(path: string, { sizeBytes, data }: Piece): Promise<void> {
  if (sizeBytes === null || sizeBytes > MAX_FILE_BYTES) throw refused('a size in it is impossible');
  await using file = await create(path);
  await file.truncate(sizeBytes);
  for await (const { offset, bytes } of data) await writeAll(file, bytes, offset);
  await file.sync();
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw refused('it holds a file twice');
    throw error;
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length;)
    done += (await file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
}

/** Unpacks a layer with the same checks as one from a registry; only the disk limits its size. */
async function restoreLayer(folder: string, { data }: Piece, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  // Same mode as after a pull; the root folder in the archive may have another.
  await chmod(folder, 0o755);
  const limits = { ...DEFAULT_IMAGE_LIMITS, maxUnpackedBytes: Number.MAX_SAFE_INTEGER };
  try {
    await unpackLayer(bytesOf(data), folder, limits, signal);
  } catch (error) {
    if (PlatformError.is(error, 'invalid_image'))
      throw refused(`a layer in it was refused (${error.message})`);
    throw error;
  }
}

async function* bytesOf(data: AsyncIterable<PieceData>): AsyncGenerator<Buffer> {
  for await (const { bytes } of data) yield bytes;
}
