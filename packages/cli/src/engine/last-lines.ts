import { open } from 'node:fs/promises';

const MAX_BYTES = 64 * 1024;

/** The last lines of a file that may be large, of what comes after its first `from` bytes; empty when it is missing. */
export async function lastLines(path: string, count: number, from = 0): Promise<readonly string[]> {
  await using file = await open(path, 'r').catch(() => null);
  if (file === null) return [];
  const { size } = await file.stat();
  const start = Math.max(from, size - MAX_BYTES);
  const { buffer, bytesRead } = await file.read({
    buffer: Buffer.alloc(Math.max(size - start, 0)),
    position: start,
  });
  const lines = buffer
    .subarray(0, bytesRead)
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
  return lines.slice(-count);
}
