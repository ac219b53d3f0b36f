import type { ByteSource } from '@svc/contract/rest';

export interface Upload {
  readonly content: ByteSource;
  readonly bytes: () => number;
  /** The error on the caller's side. */
  readonly failure: () => unknown;
}

/** Counts the bytes of an uploaded body, and keeps the error that it ended with. */
export function followUpload(body: ByteSource): Upload {
  let bytes = 0;
  let failure: unknown;
  const chunks = body[Symbol.asyncIterator]();
  // Wraps reading alone: the consumer of the chunks may throw an error of its own to stop.
  const readChunk = async () => {
    try {
      return await chunks.next();
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  async function* content(): AsyncGenerator<Uint8Array> {
    for (let next = await readChunk(); next.done !== true; next = await readChunk()) {
      bytes += next.value.length;
      yield next.value;
    }
  }
  return { content: content(), bytes: () => bytes, failure: () => failure };
}
