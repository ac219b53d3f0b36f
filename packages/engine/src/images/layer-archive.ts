import { PlatformError } from '@svc/contract/errors';
import { killGroup, outcomeOf, spawnConfined } from './confined-command.ts';
import { readDecompressed } from './decompress.ts';
import { checkDigest, digestOfFile } from './digest.ts';

/** Where a layer comes from. Plain data: it crosses to the thread that unpacks. */
export type LayerArchive =
  /** A tar, maybe compressed; `digest` is that of the file as it lies there, null when nobody announced one. */
  | { readonly type: 'file'; readonly path: string; readonly digest: string | null }
  | { readonly type: 'folder'; readonly path: string };

const CREATE_OPTIONS = [
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

/** The uncompressed tar. Nothing of a file is even decompressed before its digest was seen to be right. */
export async function* readArchive(archive: LayerArchive, signal: AbortSignal): AsyncGenerator<Buffer> {
  if (archive.type === 'folder') {
    yield* tarOfFolder(archive.path, signal);
  } else {
    if (archive.digest !== null)
      checkDigest('layer', archive.digest, await digestOfFile(archive.path, signal));
    yield* readDecompressed(archive.path, signal);
  }
}

/** A folder as the archive it would be in a layer: sorted, one file system, owners as numbers. */
async function* tarOfFolder(folder: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const tar = spawnConfined({
    command: ['tar', ...CREATE_OPTIONS, '.'],
    folders: [{ host: folder, inside: '/rootfs', writable: false }],
    workdir: '/rootfs',
    capabilities: ['CAP_DAC_READ_SEARCH'],
    // Whatever file system the folder is on, and whoever its files belong to.
    ids: 'host',
    network: 'none',
    environment: {},
  });
  const ended = outcomeOf(tar, signal);
  // Seen by the await below; until then it must not count as unhandled.
  ended.catch(() => {});
  let isWhole = false;
  try {
    yield* tar.stdout as AsyncIterable<Buffer>;
    isWhole = true;
  } finally {
    // A reader that stops early must not leave tar waiting for it.
    if (!isWhole) killGroup(tar);
  }
  const { code, stderr } = await ended;
  if (code === 0) return;
  const [reason = `tar ended with ${code}`] = stderr.trim().split('\n');
  throw new PlatformError('invalid_image', `The folder cannot be read: ${reason}`);
}
