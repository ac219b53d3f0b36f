import type { ServerStatus } from '../transports/admin/status.ts';
import { askServer } from './ask-server.ts';

const TIMEOUT_MS = 5000;

/** Status of the server with this data folder; undefined when none runs. @throws PlatformError when it does not answer in time */
export async function readStatus(dataFolder: string): Promise<ServerStatus | undefined> {
  const answer = await askServer(dataFolder, { method: 'GET', path: '/status', timeoutMs: TIMEOUT_MS });
  // The server is of the same version.
  return answer as ServerStatus | undefined;
}
