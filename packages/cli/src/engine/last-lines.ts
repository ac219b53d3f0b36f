import { open } from 'node:fs/promises';

const MAX_BYTES = 64 * 1024;

/** The last lines of a file that may be large; empty when it is missing. */
export async function lastLines(path: string, count: number): Promise<readonly string[]> {
  await using file = await open(path, 'r').catch(() => null);
  if (file === null) return [];
  const { size } = await file.stat();
  const start = Math.max(0, size - MAX_BYTES);
  const { buffer, bytesRead } = await file.read({
    buffer: Buffer.alloc(Math.min(size, MAX_BYTES)),
    position: start,
  });
  const lines = buffer
    .subarray(0, bytesRead)
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
  return lines.slice(-count);
}
