/**
 * The values of a source, and `beat` whenever there was none for this long, so that proxies and clients see that the stream lives.
 * Ends the source when it is ended itself.
 */
export async function* withKeepAlive<T>(
  source: AsyncGenerator<T, void>,
  { everyMs, beat }: { readonly everyMs: number; readonly beat: T },
): AsyncGenerator<T, void> {
  try {
    for (let next = source.next(); ;) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const timer = setTimeout(resolve, everyMs, undefined);
      try {
        const result = await Promise.race([next, promise]);
        if (result === undefined) {
          yield beat;
          continue;
        }
        if (result.done === true) return;
        yield result.value;
        next = source.next();
      } finally {
        clearTimeout(timer);
      }
    }
  } finally {
    // Not awaited: a source that waits for its next value ends with its connection.
    source.return().catch(() => undefined);
  }
}
