import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { ArchiveProcess } from './archive-process.ts';
import type { TarKind } from './archive-reading.ts';
import { readDecompressed } from './decompress.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from './image-limits.ts';
import { readArchive } from './layer-archive.ts';
import { ProgressTimeout, stopDuringWaits } from './progress-timeout.ts';
import { unpackArchive } from './unpack-archive.ts';
import { measured } from './unpack-layer.ts';

/** Detects the kind of an archive, and reads no more of it than necessary. */
export async function recognizeArchive(
  path: string,
  signal: AbortSignal,
  limits: ImageLimits = DEFAULT_IMAGE_LIMITS,
  program?: string,
): Promise<TarKind> {
  using progress = new ProgressTimeout(limits.maxIdleMs);
  const either = AbortSignal.any([signal, progress.signal]);
  using reader = new ArchiveProcess('recognize', limits, either, program);
  reader.stdout.resume();
  const bytes = stopDuringWaits(readDecompressed(path, limits, either), progress);
  const feeding = reader.feed(bytes).catch((error: unknown) => {
    // The reader would wait for the rest for ever.
    reader[Symbol.dispose]();
    throw error;
  });
  const [kind, fed] = await Promise.allSettled([reader.answer(), feeding]);
  progress.signal.throwIfAborted();
  if (fed.status === 'rejected') throw fed.reason;
  if (kind.status === 'rejected') throw kind.reason;
  return kind.value;
}

/** Extracts each file of an image archive to the empty `folder` under a number. @returns paths by the names in the archive */
export async function spreadArchive(
  path: string,
  folder: string,
  limits: ImageLimits,
  signal: AbortSignal,
  program?: string,
): Promise<ReadonlyMap<string, string>> {
  const bytes = (either: AbortSignal) =>
    measured(readArchive({ type: 'file', path, digest: null }, limits, either), null, folder, limits, either);
  const numbers = await unpackArchive('number', bytes, folder, limits, signal, program);
  const files = new Map<string, string>();
  for (const [name, number] of numbers) {
    const file = join(folder, `${number}`);
    // SAFETY: `number` is a number, and the programs that wrote here have ended: a regular file stays one, and is not a link.
    if (!(await lstat(file)).isFile())
      throw new Error('an extracted file of the archive is not a regular file');
    files.set(name, file);
  }
  return files;
}
