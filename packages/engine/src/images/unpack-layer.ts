import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { PlatformError } from '@svc/contract/errors';
import { pack, type Pack } from 'tar-stream';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { outcomeOf, spawnConfined } from './confined-command.ts';
import { drained } from './drained.ts';
import { noRoom, type HoldRoom } from './image-holds.ts';
import type { ImageLimits } from './image-limits.ts';
import { LayerRules, type LayerCounts } from './layer-rules.ts';
import { refused } from './oci-documents.ts';
import { tarEntries, type TarEntry } from './tar-entries.ts';

export interface UnpackedLayer extends Readonly<LayerCounts> {
  /** `sha256:…` of the uncompressed archive: names the layer's content. */
  readonly diffId: string;
}

/** With what whoever the layer counts for may still store; null: as much as they like. */
export type LayerLimits = ImageLimits & { readonly room?: HoldRoom | null };

const WRITE_BYTES = 256 * 1024;
const BYTES_BETWEEN_DISK_CHECKS = 64 * 1024 ** 2;

/** What tar needs to give files their owners and modes. A whiteout, the device 0/0, asks for none. */
const TAR_CAPABILITIES = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID'] as const;

/**
 * Unpacks a layer's archive into an empty folder. On failure the folder holds leftovers: the caller removes it.
 * Two walls stand between a hostile archive and the host: `LayerRules` rewrites every entry, and the tar that writes them
 * sees no folder of the host but this one and has no rights over anything else.
 */
export async function unpackLayer(
  archive: AsyncIterable<Buffer>,
  folder: string,
  limits: LayerLimits,
  signal: AbortSignal,
): Promise<UnpackedLayer> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const rules = new LayerRules(limits);
  const writer = pack();
  const tar = startTar(folder);
  const hash = createHash('sha256');
  const steps = [
    rewrite(tarEntries(measured(archive, hash, folder, limits, either)), writer, rules),
    drain(writer, tar.stdin),
    tarSucceeds(tar, either),
  ];
  try {
    await Promise.all(steps);
    await markOpaque(folder, rules.opaqueFolders(), either);
    return { diffId: `sha256:${hash.digest('hex')}`, ...rules.counts };
  } catch (error) {
    stop.abort(error);
    writer.destroy();
    await Promise.allSettled(steps);
    signal.throwIfAborted();
    throw error;
  }
}

/** What `unpackLayer` would say of the archive's content, without writing any of it; files are not counted. */
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

/** Passes on and hashes what comes, and stops what is too much: a bomb by its size, any archive when the disk runs full. */
export async function* measured(
  archive: AsyncIterable<Buffer>,
  hash: Hash | null,
  folder: string | null,
  limits: LayerLimits,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  // Padding and headers are part of the stream but of no file.
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
      throw noRoom({ ...room, takenBytes: room.takenBytes + bytes });
    if (folder !== null && bytes >= checkAt) {
      checkAt = bytes + BYTES_BETWEEN_DISK_CHECKS;
      await checkFreeSpace(folder, limits);
    }
    yield chunk;
  }
}

async function rewrite(entries: AsyncIterable<TarEntry>, writer: Pack, rules: LayerRules): Promise<void> {
  for await (const { header, body, skip } of entries) {
    const kept = rules.decide(header);
    if (kept === null || kept.type !== 'file') {
      if (kept !== null) writer.entry(kept);
      skip();
      continue;
    }
    const sink = writer.entry(kept);
    for await (const chunk of body) {
      if (!sink.write(chunk)) await drained(sink);
    }
    sink.end(null);
  }
  for (const kept of rules.finish()) writer.entry(kept);
  writer.finalize();
}

/** Gathers the many small pieces of an archive into few writes. */
async function drain(writer: Pack, stdin: Writable): Promise<void> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  // tar says on its own why it stopped reading.
  stdin.on('error', () => {});
  const flush = async () => {
    const isRoomLeft = stdin.write(Buffer.concat(pieces));
    pieces = [];
    bytes = 0;
    if (!isRoomLeft && !stdin.destroyed) await drained(stdin);
  };
  for await (const piece of writer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes >= WRITE_BYTES) await flush();
  }
  await flush();
  stdin.end();
}

function startTar(folder: string) {
  const command = [
    'tar',
    '--extract',
    '--file=-',
    '--numeric-owner',
    '--same-owner',
    '--preserve-permissions',
  ] as const;
  return spawnConfined({
    command: [
      ...command,
      '--xattrs',
      '--xattrs-include=*',
      '--delay-directory-restore',
      '--no-acls',
      '--no-selinux',
    ],
    folders: [{ host: folder, inside: '/layer', writable: true }],
    workdir: '/layer',
    capabilities: TAR_CAPABILITIES,
    ids: 'own',
    network: 'none',
    environment: {},
  });
}

/** The attribute is one that root alone can set, which tar is not: svc-host does it, without following a link. */
async function markOpaque(folder: string, paths: readonly string[], signal: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  // SAFETY: no shell; the names of the layer are read from stdin and resolved by the kernel inside the folder.
  const marking = spawn(BUILT_SVC_HOST, ['--mark-opaque', folder], {
    stdio: 'pipe',
    env: {},
    detached: true,
  });
  marking.stdout.resume();
  // It says on its own why it stopped reading.
  marking.stdin.on('error', () => {});
  marking.stdin.end(paths.map((path) => `${path}\0`).join(''));
  const { code, stderr } = await outcomeOf(marking, signal);
  if (code !== 0) throw new Error(`opaque folders could not be marked: ${stderr.trim()}`);
}

async function tarSucceeds(tar: ReturnType<typeof startTar>, signal: AbortSignal): Promise<void> {
  tar.stdout.resume();
  const { code, stderr } = await outcomeOf(tar, signal);
  if (code === 0) return;
  if (/No space left on device/.test(stderr)) throw diskFull();
  throw new Error(`tar ended with ${code}: ${stderr.trim().split('\n').slice(0, 3).join('; ')}`);
}

async function checkFreeSpace(folder: string, limits: ImageLimits): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < limits.minFreeBytes) throw diskFull();
}

function diskFull(): PlatformError {
  return new PlatformError(
    'insufficient_storage',
    'The disk that holds images is full; free space with `svc image prune` and try again',
  );
}
