import type { ServerStatus } from '../transports/admin/status.ts';
import { askServer } from './ask-server.ts';

const TIMEOUT_MS = 5000;

/** Of the server with this data folder; undefined when there is none. @throws PlatformError when it does not answer in time */
export async function readStatus(dataFolder: string): Promise<ServerStatus | undefined> {
  const answer = await askServer(dataFolder, { method: 'GET', path: '/status', timeoutMs: TIMEOUT_MS });
  // The server is ours and of the same version.
  return answer as ServerStatus | undefined;
}
