import { stat } from 'node:fs/promises';
import { PlatformError } from '@svc/contract/errors';
import { killGroup, outcomeOf, spawnConfined } from './confined-command.ts';
import { readDecompressed } from './decompress.ts';
import { checkDigest, digestOfFile } from './digest.ts';
import { refused } from './image-failures.ts';
import type { ImageLimits } from './image-limits.ts';

/** The source of a layer. Plain data, because it is sent to the thread that unpacks. */
export type LayerArchive =
  /** A tar, maybe compressed; `digest` is that of the file, null when none was announced. */
  | { readonly type: 'file'; readonly path: string; readonly digest: string | null }
  | { readonly type: 'folder'; readonly path: string };

/** The tar options for layers that we make, so that the same files give the same bytes. */
export const LAYER_TAR_OPTIONS = [
  '--create',
  '--file=-',
  '--format=pax',
  '--pax-option=delete=atime,delete=ctime',
  '--sort=name',
  '--numeric-owner',
  '--one-file-system',
  '--xattrs',
  '--xattrs-include=user.*',
];

/**
 * The uncompressed tar. A file is decompressed only after its digest was checked, and only up to the limit for its size: an upload that
 * costs its sender little must not fill this host's disk.
 */
export async function* readArchive(
  archive: LayerArchive,
  limits: Pick<ImageLimits, 'maxUnpackRatio' | 'freeUnpackBytes' | 'maxIdleMs'>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  if (archive.type === 'folder') {
    yield* tarOfFolder(archive.path, signal);
  } else {
    if (archive.digest !== null)
      checkDigest('layer', archive.digest, await digestOfFile(archive.path, signal));
    const { size } = await stat(archive.path);
    const { maxUnpackRatio, freeUnpackBytes } = limits;
    const maxBytes = Math.max(freeUnpackBytes, size * maxUnpackRatio);
    let bytes = 0;
    for await (const chunk of readDecompressed(archive.path, limits, signal)) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        const why = `a layer of ${size} bytes unpacks to more than ${maxUnpackRatio} times as many`;
        throw refused(`${why}; the operator can allow more with --max-unpack-ratio`);
      }
      yield chunk;
    }
  }
}

/** Archives a folder as a layer: sorted, one file system, numeric owners. */
async function* tarOfFolder(folder: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const tar = spawnConfined({
    command: ['tar', ...LAYER_TAR_OPTIONS, '.'],
    programs: [],
    folders: [{ host: folder, inside: '/rootfs', writable: false }],
    workdir: '/rootfs',
    capabilities: ['CAP_DAC_READ_SEARCH'],
    // The folder may be on any file system, with files of any owner.
    ids: 'any',
    network: 'none',
    environment: {},
  });
  const ended = outcomeOf(tar, signal);
  // Awaited below; until then it must not count as unhandled.
  ended.catch(() => {});
  let isWhole = false;
  try {
    yield* tar.stdout as AsyncIterable<Buffer>;
    isWhole = true;
  } finally {
    // When the reader stops early, tar is ended.
    if (!isWhole) killGroup(tar);
  }
  const { code, stderr } = await ended;
  if (code === 0) return;
  const [reason = `tar ended with ${code}`] = stderr.trim().split('\n');
  throw new PlatformError('invalid_image', `The folder cannot be read: ${reason}`);
}
