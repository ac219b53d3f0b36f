import type { Readable } from 'node:stream';

/** Reads the stream to its end. Iterating over the stream itself would then also end its writable side. */
export function readHalf(stream: Readable): AsyncIterable<Buffer> {
  return stream.iterator({ destroyOnReturn: false });
}
