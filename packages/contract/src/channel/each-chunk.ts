import { abortable } from '../async/abort.ts';

/**
 * Calls `use` with each chunk, one after the other. An abort is noticed also while the source is silent or
 * the use is stuck; the source is then asked to stop, but not awaited.
 */
export async function eachChunk(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  use: (chunk: Uint8Array) => Promise<void>,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await abortable(iterator.next(), signal);
      if (next.done === true) {
        isDone = true;
        return;
      }
      await abortable(use(next.value), signal);
    }
  } finally {
    // The caller already gets the error that stopped the source; a second one from stopping it is dropped.
    if (!isDone) void iterator.return?.().catch(() => undefined);
  }
}
