import { constants, mkdir, open, readdir, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { LiveDisks } from '../rootfs/live-disk.ts';
import { RecordFiles } from '../sandboxes/record-files.ts';
import type { EngineRecord } from '../sandboxes/record.ts';
import { dataRanges } from '../snapshots/data-ranges.ts';
import { MAX_DATA_BYTES, type Piece, type PieceData } from './archive-format.ts';
import { copyAtRest } from './copy-at-rest.ts';
import { layerTar } from './layer-tar.ts';
import { kindOfPath } from './saved-paths.ts';

/** A boot id that no machine has: runs in restored records count as ended. */
const FORMER_BOOT = 'before the backup';

export interface SaveOptions {
  readonly dataFolder: string;
  /** A private folder on the same file system, for copies of disks. Only this backup uses it. */
  readonly stage: string;
  readonly hasDisks: boolean;
  readonly signal: AbortSignal;
}

interface Saving extends SaveOptions {
  readonly liveDisks: LiveDisks;
}

/**
 * Writes the part of the engine's data folder that cannot be rebuilt. Works with and without a running engine. Objects that are removed
 * during the backup are left out; a sandbox, volume or snapshot is saved completely or not at all.
 */
export async function* engineParts(options: SaveOptions): AsyncGenerator<Piece> {
  yield* file(options.dataFolder, 'authority.pem');
  if (!options.hasDisks) return;
  const hostCalls = new SvcHostCalls({ processes: 1 });
  try {
    const liveDisks = new LiveDisks(options.dataFolder, hostCalls);
    // Without a running engine this process has to thaw disks that an earlier backup left frozen.
    await liveDisks.recover();
    yield* parts({ ...options, liveDisks });
  } finally {
    await hostCalls.close();
  }
}

async function* parts(options: Saving): AsyncGenerator<Piece> {
  const { dataFolder } = options;
  const records: EngineRecord[] = await new RecordFiles(join(dataFolder, 'sandboxes')).readAll(() => {});
  // Skips warm sandboxes and those whose create has not returned: they have no owner yet.
  for (const record of records) if (record.id !== null && record.complete) yield* sandbox(options, record);
  for (const name of await namesIn(dataFolder, 'volumes')) yield* volume(options, name);
  for (const name of await namesIn(dataFolder, 'snapshots')) {
    // The record marks the snapshot as complete, and a complete snapshot never changes.
    yield* file(dataFolder, `snapshots/${name}/snapshot.json`);
    yield* file(dataFolder, `snapshots/${name}/disk.img`);
  }
  yield* images(dataFolder);
}

async function* sandbox(options: Saving, record: EngineRecord): AsyncGenerator<Piece> {
  const { dataFolder } = options;
  const { handle } = record;
  const disk = await stagedDisk(options, `rootfs/disks/${handle}.img`);
  if (disk === undefined) return;
  yield disk;
  yield content(`sandboxes/${handle}/record.json`, atRest(record));
  for (const name of await namesIn(dataFolder, `sandboxes/${handle}`))
    if (name.startsWith('log-')) yield* file(dataFolder, `sandboxes/${handle}/${name}`);
}

/** A backup holds disks and no processes, so a running sandbox is restored as stopped. */
function atRest(record: EngineRecord): EngineRecord {
  const isActive = ['starting', 'running', 'stopping'].includes(record.state);
  const state = isActive ? 'stopped' : record.state;
  if (record.run === null) return { ...record, state };
  const run = { ...record.run, bootId: FORMER_BOOT, slot: null };
  if (run.endedAt !== null) return { ...record, state, run };
  const end = {
    reason: 'stopped',
    message: 'it ran while the backup was made; start it again',
    exitCode: null,
  } as const;
  return { ...record, state, run: { ...run, endedAt: new Date().toISOString(), end } };
}

async function* volume(options: Saving, name: string): AsyncGenerator<Piece> {
  const { dataFolder } = options;
  const image = await stagedDisk(options, `volumes/${name}/image.ext4`);
  if (image === undefined) return;
  yield image;
  for (const note of await namesIn(dataFolder, `volumes/${name}/writing`))
    yield* file(dataFolder, `volumes/${name}/writing/${note}`);
  yield* file(dataFolder, `volumes/${name}/volume.json`);
}

async function* images(dataFolder: string): AsyncGenerator<Piece> {
  for (const name of await namesIn(dataFolder, 'images/layers')) {
    const folder = `images/layers/${name}`;
    const path = `${folder}/fs`;
    if (kindOfPath(path) === null) continue;
    yield { path, sizeBytes: null, data: placed(layerTar(join(dataFolder, path))) };
    yield* file(dataFolder, `${folder}/layer.json`);
  }
  for (const kind of ['holds', 'records'])
    for (const name of await namesIn(dataFolder, `images/${kind}`))
      yield* file(dataFolder, `images/${kind}/${name}`);
}

/** The copy is deleted when the next one is made. */
async function stagedDisk(
  { dataFolder, stage, liveDisks, signal }: Saving,
  path: string,
): Promise<Piece | undefined> {
  if (kindOfPath(path) === null) return undefined;
  signal.throwIfAborted();
  await rm(join(stage, 'copy.img'), { force: true });
  const copy = await copyAtRest(liveDisks, join(dataFolder, path), stage, signal);
  if (copy === undefined) return undefined;
  const [piece] = await Array.fromAsync(file(stage, 'copy.img', path));
  return piece;
}

/** One piece; none when the file is missing or is not a regular file. */
async function* file(folder: string, name: string, path = name): AsyncGenerator<Piece> {
  if (kindOfPath(path) === null) return;
  const handle = await openFile(join(folder, name));
  if (handle === undefined) return;
  const { size } = await handle.stat();
  yield { path, sizeBytes: size, data: ranges(handle, join(folder, name), size) };
}

async function* ranges(handle: FileHandle, path: string, size: number): AsyncGenerator<PieceData> {
  try {
    for (const { start, end } of await dataRanges(path, size)) yield* pieces(handle, start, end);
  } finally {
    await handle.close();
  }
}

async function* pieces(handle: FileHandle, start: number, end: number): AsyncGenerator<PieceData> {
  for (let offset = start; offset < end;) {
    const { bytesRead, buffer } = await handle.read(
      Buffer.allocUnsafe(Math.min(MAX_DATA_BYTES, end - offset)),
      { position: offset },
    );
    if (bytesRead === 0) return;
    yield { offset, bytes: buffer.subarray(0, bytesRead) };
    offset += bytesRead;
  }
}

/** Splits a stream into pieces; each begins at the offset where the one before ended. */
async function* placed(chunks: AsyncIterable<Buffer>): AsyncGenerator<PieceData> {
  let offset = 0;
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += MAX_DATA_BYTES) {
      const bytes = chunk.subarray(start, start + MAX_DATA_BYTES);
      yield { offset, bytes };
      offset += bytes.length;
    }
  }
}

function content(path: string, value: unknown): Piece {
  const bytes = Buffer.from(JSON.stringify(value));
  return { path, sizeBytes: bytes.length, data: placed(single(bytes)) };
}

async function* single(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes);
}

/** SAFETY: a symbolic link in the place of a file is skipped. */
async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function namesIn(dataFolder: string, folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(join(dataFolder, folder))).toSorted();
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}

/** An empty folder for copies of disks. Removes leftovers of an earlier backup. */
export async function prepareStage(stage: string): Promise<void> {
  await rm(stage, { recursive: true, force: true });
  await mkdir(stage, { mode: 0o700 });
}
