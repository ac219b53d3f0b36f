import { on } from 'node:events';
import { watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

const BLOCK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** The last lines of a file that may be large, without its first `from` bytes; empty when it is missing. */
export async function lastLines(path: string, count: number, from = 0): Promise<readonly string[]> {
  await using file = await open(path, 'r').catch(() => null);
  if (file === null) return [];
  const { size } = await file.stat();
  const start = await startOfLast(file, count, { from, size });
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(size - start), position: start });
  return buffer
    .subarray(0, bytesRead)
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** Yields the last lines of a file and then every complete line that is appended, until the signal aborts. */
export async function followLines(
  path: string,
  count: number,
  onLine: (line: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  await using file = await open(path, 'r');
  // The watch starts before the first read, so that a line written in between is not missed until the next one.
  using watcher = closing(watch(path));
  const changes = on(watcher.events, 'change', signal === undefined ? {} : { signal });
  const { size } = await file.stat();
  const lines = new LinesFrom(file, await startOfLast(file, count, { from: 0, size }));
  try {
    await lines.readOn(onLine);
    for await (const _ of changes) await lines.readOn(onLine);
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}

/** Continues reading; the end of the file may be in the middle of a line, or of a character. */
class LinesFrom {
  readonly #file: FileHandle;
  readonly #block = Buffer.alloc(BLOCK_BYTES);
  readonly #decoder = new TextDecoder();
  #position: number;
  #rest = '';

  constructor(file: FileHandle, position: number) {
    this.#file = file;
    this.#position = position;
  }

  async readOn(onLine: (line: string) => void): Promise<void> {
    for (;;) {
      const { bytesRead } = await this.#file.read({ buffer: this.#block, position: this.#position });
      if (bytesRead === 0) return;
      this.#position += bytesRead;
      const text = this.#decoder.decode(this.#block.subarray(0, bytesRead), { stream: true });
      const lines = (this.#rest + text).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') onLine(line);
    }
  }
}

/** The offset at which the last `count` lines of a file begin; searches backwards from its end. */
async function startOfLast(
  file: FileHandle,
  count: number,
  { from, size }: { readonly from: number; readonly size: number },
): Promise<number> {
  let found = 0;
  for (let end = size; end > from;) {
    const begin = Math.max(from, end - BLOCK_BYTES);
    const { buffer } = await file.read({ buffer: Buffer.alloc(end - begin), position: begin });
    for (let index = buffer.length - 1; index >= 0; index -= 1) {
      // A line end in the last byte begins no further line.
      if (buffer[index] !== NEWLINE || begin + index === size - 1) continue;
      found += 1;
      if (found === count) return begin + index + 1;
    }
    end = begin;
  }
  return Math.min(from, size);
}

function closing(events: ReturnType<typeof watch>): Disposable & { readonly events: typeof events } {
  return { events, [Symbol.dispose]: () => events.close() };
}
