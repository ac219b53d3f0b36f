import { HostCallError } from './host-calls.ts';

/** A helper that dies this often during one operation does not die by accident. */
const RETRIES = 2;

/** Runs an operation, and repeats it when it failed only because svc-host was killed or hung. A failed operation has to undo itself. */
export async function retryLostHelper<Result>(
  work: () => Promise<Result>,
  signal: AbortSignal,
  onRetry: (error: unknown) => void,
): Promise<Result> {
  for (let spare = RETRIES; ; spare--) {
    try {
      return await work();
    } catch (error) {
      if (spare === 0 || signal.aborted || !isOfLostHelper(error)) throw error;
      onRetry(error);
    }
  }
}

/** An undo that failed as well is a `SuppressedError`, which is not repeated. */
export function isOfLostHelper(error: unknown): boolean {
  if (error instanceof HostCallError) return error.errno === 'ECHILD' || error.errno === 'ETIMEDOUT';
  return error instanceof Error && error.cause !== undefined && isOfLostHelper(error.cause);
}
