import { spawn } from '@svc/contract/node-spawn';
import { createHash, type Hash } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { outcomeOf } from './confined-command.ts';
import { refused } from './image-failures.ts';
import { overHoldLimit, type HoldRoom } from './image-holds.ts';
import type { ImageLimits } from './image-limits.ts';
import type { LayerCounts } from './layer-rules.ts';
import { diskFull, unpackArchive } from './unpack-archive.ts';

export interface UnpackedLayer extends Readonly<LayerCounts> {
  /** `sha256:…` of the uncompressed archive: names the layer's content. */
  readonly diffId: string;
}

/** `room`: the storage left for the scope that the layer counts for; null for no limit. */
export type LayerLimits = ImageLimits & { readonly room?: HoldRoom | null };

const BYTES_BETWEEN_DISK_CHECKS = 64 * 1024 ** 2;

/**
 * Unpacks a layer's archive into an empty folder. On failure the folder holds leftovers: the caller removes it. Two barriers protect the
 * host from a hostile archive: `LayerRules` rewrites every entry, and neither its process nor the tar that writes the files has privileges
 * beyond this folder. The digest is computed here, over the bytes that both receive: a layer that takes them over keeps its own digest, and
 * cannot pass for another.
 */
export async function unpackLayer(
  archive: AsyncIterable<Buffer>,
  folder: string,
  limits: LayerLimits,
  signal: AbortSignal,
): Promise<UnpackedLayer> {
  const hash = createHash('sha256');
  const bytes = (either: AbortSignal) => measured(archive, hash, folder, limits, either);
  const { counts, opaque } = await unpackArchive('rewrite', bytes, folder, limits, signal);
  await markOpaque(folder, opaque, signal);
  return { diffId: `sha256:${hash.digest('hex')}`, ...counts };
}

/** Returns the result of `unpackLayer` for the archive's content, without writing it; files are not counted. */
export async function measureLayer(
  archive: AsyncIterable<Buffer>,
  limits: ImageLimits,
  signal: AbortSignal,
): Promise<UnpackedLayer> {
  const hash = createHash('sha256');
  let unpackedBytes = 0;
  for await (const chunk of measured(archive, hash, null, limits, signal)) unpackedBytes += chunk.length;
  return { diffId: `sha256:${hash.digest('hex')}`, unpackedBytes, entries: 0, dropped: 0 };
}

/** Passes the bytes on, hashes them and enforces the limits: a bomb by its size, any archive when the disk runs full. */
export async function* measured(
  archive: AsyncIterable<Buffer>,
  hash: Hash | null,
  folder: string | null,
  limits: LayerLimits,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  // Padding and headers are part of the stream but not of a file.
  const maxBytes = limits.maxUnpackedBytes + limits.maxEntries * 1024;
  const { room = null } = limits;
  let bytes = 0;
  let checkAt = BYTES_BETWEEN_DISK_CHECKS;
  for await (const chunk of archive) {
    signal.throwIfAborted();
    hash?.update(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) throw refused(`it holds more than ${limits.maxUnpackedBytes} bytes once unpacked`);
    if (room !== null && room.takenBytes + bytes > room.maximumBytes)
      throw overHoldLimit({ ...room, takenBytes: room.takenBytes + bytes });
    if (folder !== null && bytes >= checkAt) {
      checkAt = bytes + BYTES_BETWEEN_DISK_CHECKS;
      await checkFreeSpace(folder, limits);
    }
    yield chunk;
  }
}

/** Marks folders as opaque. Only root can set the attribute, and tar is not root: svc-host sets it, without following a link. */
async function markOpaque(folder: string, paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  // SAFETY: no shell; the names of the layer are read from stdin and resolved by the kernel inside the folder.
  const marking = spawn(BUILT_SVC_HOST, ['--mark-opaque', folder], {
    stdio: 'pipe',
    env: {},
    detached: true,
  });
  marking.stdout.resume();
  // Its own error says why it stopped reading.
  marking.stdin.on('error', () => {});
  marking.stdin.end(paths.map((path) => `${path}\0`).join(''));
  const { code, stderr } = await outcomeOf(marking, signal);
  if (code !== 0) throw new Error(`opaque folders could not be marked: ${stderr.trim()}`);
}

async function checkFreeSpace(folder: string, limits: ImageLimits): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < limits.minFreeBytes) throw diskFull();
}
