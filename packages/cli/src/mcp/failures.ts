import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const UNAUTHORIZED = 401;
const NOT_FOUND = 404;

/** The server does not know the session, as after its restart or a long pause. */
export function isSessionLost(error: unknown): boolean {
  return error instanceof StreamableHTTPError && error.code === NOT_FOUND;
}

/** What the user of an AI tool reads when a message could not be delivered. */
export function explainFailure(error: unknown, serverUrl: string): string {
  if (
    error instanceof UnauthorizedError ||
    (error instanceof StreamableHTTPError && error.code === UNAUTHORIZED)
  ) {
    return 'Authentication required: set SVC_API_KEY to a key, which `svc server keygen --quiet` prints';
  }
  if (error instanceof StreamableHTTPError) return `the server at ${serverUrl} refused: ${error.message}`;
  const message = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `no server answers at ${serverUrl}: ${message}${cause}; start one with \`svc server start\``;
}
