import type { IncomingMessage } from 'node:http';

/** Abort reason of work whose caller went away. A single instance, because its stack is irrelevant. */
export const CALLER_GONE = new Error('the caller went away');

/**
 * Whether work failed because its caller went away: the answer has no recipient, and the server made no error.
 */
export function isCallerGone(error: unknown): boolean {
  return error === CALLER_GONE || (error instanceof Error && isCallerGone(error.cause));
}

/** Whether the connection ended before the request was complete, in which case reading it fails. */
export function hasBrokenOff(request: IncomingMessage): boolean {
  return request.destroyed && !request.complete;
}
