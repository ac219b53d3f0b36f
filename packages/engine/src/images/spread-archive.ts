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

/** Finds out what a tar is an archive of; reads no more of it than that takes. */
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
    // It would wait for the rest for ever.
    reader[Symbol.dispose]();
    throw error;
  });
  const [kind, fed] = await Promise.allSettled([reader.answer(), feeding]);
  progress.signal.throwIfAborted();
  if (fed.status === 'rejected') throw fed.reason;
  if (kind.status === 'rejected') throw kind.reason;
  return kind.value;
}

/** Writes each file of an archive of an image to `folder`, an empty one, under a number, and tells which is which. */
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
    // SAFETY: the number is one, and the programs that wrote here have ended: what is a file now stays one, and is no link to another.
    if (!(await lstat(file)).isFile()) throw new Error('what was to be a file of the archive is none');
    files.set(name, file);
  }
  return files;
}
