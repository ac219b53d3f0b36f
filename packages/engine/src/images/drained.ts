interface Emitter {
  readonly destroyed: boolean;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Waits until a stream accepts more data, or is closed. */
export async function drained(stream: Emitter): Promise<void> {
  // A destroyed stream may emit no further event.
  if (stream.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onEvent = () => resolve();
  const events = ['drain', 'close', 'error'];
  for (const event of events) stream.on(event, onEvent);
  await promise;
  for (const event of events) stream.off(event, onEvent);
}
