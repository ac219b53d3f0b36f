/** Settles like `promise`, but rejects with the signal's reason as soon as it aborts. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const { promise: raced, resolve, reject } = Promise.withResolvers<T>();
  const stop = onAbort(signal, reject);
  promise.then(resolve, reject).finally(stop);
  return raced;
}

/** Calls back once, also when the signal has already aborted; returns a function that removes the listener. */
export function onAbort(signal: AbortSignal | undefined, callback: (reason: Error) => void): () => void {
  if (signal === undefined) return () => undefined;
  const listener = (): void => callback(abortReason(signal));
  if (signal.aborted) {
    listener();
    return () => undefined;
  }
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error('The call was aborted', { cause: reason });
}
