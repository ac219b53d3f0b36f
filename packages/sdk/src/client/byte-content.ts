/** Content to send: whole, piece by piece, or a `Blob` such as a file that a browser was given. */
export type Content = string | Uint8Array | Blob | AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

const encoder = new TextEncoder();

/** In pieces unless it is whole already. */
export function toBytes(content: Content): Uint8Array | AsyncIterable<Uint8Array> {
  if (typeof content === 'string') return encoder.encode(content);
  if (content instanceof Blob) return chunksOf(content.stream());
  return content instanceof ReadableStream ? chunksOf(content) : content;
}

/** Content that is being sent. When it throws, that is the caller's own error and not a failure of the connection. */
export class ContentSource {
  readonly bytes: Uint8Array | AsyncIterable<Uint8Array>;
  #failure: { readonly error: unknown } | undefined;

  constructor(content: Content) {
    const bytes = toBytes(content);
    this.bytes = bytes instanceof Uint8Array ? bytes : this.#watched(bytes);
  }

  /** Undefined unless the content has thrown. */
  get failure(): unknown {
    return this.#failure?.error;
  }

  async *#watched(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    try {
      yield* chunks;
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }
}

/** Not every browser can iterate a stream. Leaving early cancels the stream. */
export async function* chunksOf(
  stream: Pick<ReadableStream<Uint8Array>, 'getReader'>,
): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader();
  let isDone = false;
  try {
    for (;;) {
      const next = await reader.read();
      if (next.done) {
        isDone = true;
        return;
      }
      yield next.value;
    }
  } finally {
    // The caller has stopped reading, so an error of the cancellation is dropped.
    if (!isDone) reader.cancel().catch(() => undefined);
  }
}

/** Pulls one piece at a time, so that a slow receiver slows down the source. */
export function streamOf(chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

export async function joinChunks(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const held: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    held.push(chunk);
    length += chunk.length;
  }
  const joined = new Uint8Array(length);
  let position = 0;
  for (const chunk of held) {
    joined.set(chunk, position);
    position += chunk.length;
  }
  return joined;
}
