/** Why work for a caller who went away was broken off. One for all: where it was made says nothing. */
export const CALLER_GONE = new Error('the caller went away');

/** Whether this is why it failed: then nobody is there to be told, and nothing is wrong with us. */
export function isCallerGone(error: unknown): boolean {
  return error === CALLER_GONE || (error instanceof Error && isCallerGone(error.cause));
}
