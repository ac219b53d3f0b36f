import { isErrno } from '@svc/contract/errno';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { request } from '@svc/contract/node-http';
import { adminSocketPath } from '../transports/admin/admin-socket.ts';
import type { ServerStatus } from '../transports/admin/status.ts';

const TIMEOUT_MS = 5000;
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Asks the server with this data folder; undefined when there is none. @throws PlatformError when it does not answer in time */
export async function readStatus(dataFolder: string): Promise<ServerStatus | undefined> {
  const socketPath = adminSocketPath(join(dataFolder, 'server'));
  try {
    // Whoever waits for a server asks often, and this look costs less than a request.
    await access(socketPath);
    // The server is ours and of the same version.
    return JSON.parse(await get(socketPath)) as ServerStatus;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ECONNREFUSED')) return undefined;
    if (isErrno(error, 'EACCES', 'EPERM')) throw error;
    const hint = `the server on ${dataFolder} does not answer; its supervisor replaces a web-facing process that hangs within seconds, so ask again, or see \`svc server logs\``;
    throw new PlatformError('unavailable', hint, { cause: error });
  }
}

async function get(socketPath: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath, path: '/status', signal: AbortSignal.timeout(TIMEOUT_MS) },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
          // SAFETY: whoever answers is the server's user, and root may be asking.
          if (text.length > MAX_CHARACTERS)
            outgoing.destroy(new Error('the status of the server is too long'));
        });
        response.on('end', () => {
          if (response.statusCode === 200 && response.complete) resolve(text);
          else reject(new Error(`the server answered ${response.statusCode}`));
        });
        response.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end();
  });
}
