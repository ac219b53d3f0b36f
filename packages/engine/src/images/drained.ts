interface Emitter {
  readonly destroyed: boolean;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Waits until a stream takes more, or never will. */
export async function drained(stream: Emitter): Promise<void> {
  // Its last event may be over.
  if (stream.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onEvent = () => resolve();
  const events = ['drain', 'close', 'error'];
  for (const event of events) stream.on(event, onEvent);
  await promise;
  for (const event of events) stream.off(event, onEvent);
}
