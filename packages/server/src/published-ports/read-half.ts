import type { Readable } from 'node:stream';

/** What comes in, to its end. Iterating over the stream itself would then also end the direction out. */
export function readHalf(stream: Readable): AsyncIterable<Buffer> {
  return stream.iterator({ destroyOnReturn: false });
}
