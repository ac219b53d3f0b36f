import { open, watch } from 'node:fs/promises';

const CHUNK_BYTES = 64 * 1024;

/** Hands on every whole line that is appended to a file from now on, until the signal fires. */
export async function followLines(
  path: string,
  onLine: (line: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  await using file = await open(path, 'r');
  let position = (await file.stat()).size;
  let rest = '';
  const decoder = new TextDecoder();
  const buffer = Buffer.alloc(CHUNK_BYTES);
  const readOn = async () => {
    for (;;) {
      const { bytesRead } = await file.read({ buffer, position });
      if (bytesRead === 0) return;
      position += bytesRead;
      const lines = (rest + decoder.decode(buffer.subarray(0, bytesRead), { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) onLine(line);
    }
  };
  try {
    const changes = watch(path, signal === undefined ? {} : { signal });
    for await (const _ of changes) await readOn();
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}
