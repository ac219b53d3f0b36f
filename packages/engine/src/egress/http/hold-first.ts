import { Transform } from 'node:stream';
import { MAX_HELD_BYTES } from '../secrets/request-filter.ts';
import type { HeldBytes } from './held-bytes.ts';

export interface HeldFirst {
  /** The last stage; the body continues from it. */
  readonly stage: Transform;
  /** Resolves when the body has ended or exceeds the limit; rejects with the error that ended it before. */
  readonly ready: Promise<void>;
}

/** Buffers a body until it has ended, so that the head is sent only after all of the body was checked. */
export function holdFirst(held: HeldBytes): HeldFirst {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let length = 0;
  // Released at the end only: while the server does not read, data may still be in the stage.
  const reserved = new DisposableStack();
  const stage = new Transform({
    readableHighWaterMark: MAX_HELD_BYTES,
    transform(chunk: Buffer, _, done) {
      const room = length > MAX_HELD_BYTES ? undefined : held.reserve(chunk.length);
      if (room === null) return done(new Error('Too much is held already'));
      if (room !== undefined) reserved.use(room);
      length += chunk.length;
      if (length > MAX_HELD_BYTES) resolve();
      done(null, chunk);
    },
    flush(done) {
      resolve();
      done();
    },
  });
  stage.once('close', () => {
    reserved.dispose();
    reject(stage.errored ?? new Error('It ended too early'));
  });
  // `ready` rejects with the error as well.
  stage.on('error', () => undefined);
  return { stage, ready: promise };
}
