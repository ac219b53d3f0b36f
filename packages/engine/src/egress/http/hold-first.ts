import { Transform } from 'node:stream';
import { MAX_HELD_BYTES } from '../secrets/request-filter.ts';
import type { HeldBytes } from './held-bytes.ts';

export interface HeldFirst {
  /** Stands last; from it the body goes on. */
  readonly stage: Transform;
  /** Resolves when the body has ended or is longer than is held; rejects with what ended it before. */
  readonly ready: Promise<void>;
}

/** Keeps a body back until it has ended, so that its head need not be sent before all of it was looked at. */
export function holdFirst(held: HeldBytes): HeldFirst {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let length = 0;
  // What went on may still be in the stage while the server does not read, so it counts until the end.
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
  // Whoever waits hears of it too.
  stage.on('error', () => undefined);
  return { stage, ready: promise };
}
