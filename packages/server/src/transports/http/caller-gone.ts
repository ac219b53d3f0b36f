import type { IncomingMessage } from 'node:http';

/** Why work for a caller who went away was broken off. One for all: where it was made says nothing. */
export const CALLER_GONE = new Error('the caller went away');

/** Whether this is why it failed: then nobody is there to be told, and nothing is wrong with us. */
export function isCallerGone(error: unknown): boolean {
  return error === CALLER_GONE || (error instanceof Error && isCallerGone(error.cause));
}

/** Whether the connection ended before the whole request was there: what fails then is the reading of it. */
export function hasBrokenOff(request: IncomingMessage): boolean {
  return request.destroyed && !request.complete;
}
