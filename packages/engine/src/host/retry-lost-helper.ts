import { HostCallError } from './host-calls.ts';

/** A helper that is lost this often in one piece of work is not lost by accident. */
const RETRIES = 2;

/** Does some work, and does it again when it failed only because svc-host was killed or hung. Work that fails has to undo itself. */
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

/** What could not be undone either is a `SuppressedError`, and not of this kind. */
export function isOfLostHelper(error: unknown): boolean {
  if (error instanceof HostCallError) return error.errno === 'ECHILD' || error.errno === 'ETIMEDOUT';
  return error instanceof Error && error.cause !== undefined && isOfLostHelper(error.cause);
}
