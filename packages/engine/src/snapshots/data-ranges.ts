import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

const BLOCK_BYTES = 4096;
const EXTENT = /^\s*\d+:\s+(\d+)\.\.\s*(\d+):/;
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

export interface DataRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The parts of a file that may contain data, in order; the rest is holes. The whole file where the file system does not report extents.
 */
export async function dataRanges(
  path: string,
  sizeBytes: number,
  signal?: AbortSignal,
): Promise<readonly DataRange[]> {
  try {
    // SAFETY: no shell; the path is made by the engine, under its own folder. `-s` first writes out data that has no place on disk yet.
    const { stdout } = await run('filefrag', ['-s', '-v', `-b${BLOCK_BYTES}`, path], {
      encoding: 'utf8',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
      maxBuffer: MAX_OUTPUT_BYTES,
      ...(signal === undefined ? {} : { signal }),
    });
    return parseExtents(stdout, sizeBytes);
  } catch {
    signal?.throwIfAborted();
    // tmpfs and network file systems do not support it.
    return [{ start: 0, end: sizeBytes }];
  }
}

/** Parses the output of `filefrag -v`: `0:  first..  last: …`, in blocks, both included. */
export function parseExtents(text: string, sizeBytes: number): readonly DataRange[] {
  const ranges: DataRange[] = [];
  for (const line of text.split('\n')) {
    const [, first, last] = EXTENT.exec(line) ?? [];
    if (first === undefined || last === undefined) continue;
    const start = Number(first) * BLOCK_BYTES;
    const end = Math.min((Number(last) + 1) * BLOCK_BYTES, sizeBytes);
    const before = ranges.at(-1);
    // Unexpected order: treat the whole file as data.
    if (before !== undefined && start < before.end) return [{ start: 0, end: sizeBytes }];
    if (start < end) ranges.push({ start, end });
  }
  return ranges;
}
