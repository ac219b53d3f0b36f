import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '@svc/contract/errno';
import { PlatformError, readEnvelope } from '@svc/contract/errors';
import { request } from '@svc/contract/node-http';
import { adminSocketPath } from '../transports/admin/admin-socket-path.ts';

const MAX_CHARACTERS = 64 * 1024 * 1024;

export interface Question {
  readonly method: 'GET' | 'DELETE';
  readonly path: string;
  readonly timeoutMs: number;
}

/**
 * Sends a request to the server with this data folder, as its operator; undefined when none runs.
 * @throws PlatformError the server's refusal; `unavailable` when it does not answer in time
 */
export async function askServer(dataFolder: string, question: Question): Promise<unknown> {
  const socketPath = adminSocketPath(join(dataFolder, 'server'));
  try {
    // Callers poll for the start of a server, and this check is cheaper than a request.
    await access(socketPath);
    return JSON.parse(await send(socketPath, question)) as unknown;
  } catch (error) {
    if (PlatformError.is(error)) throw error;
    if (isErrno(error, 'ENOENT', 'ECONNREFUSED')) return undefined;
    if (isErrno(error, 'EACCES', 'EPERM')) throw error;
    const hint = `the server on ${dataFolder} does not answer; its supervisor replaces a web-facing process that hangs within seconds, so ask again, or see \`svc server logs\``;
    throw new PlatformError('unavailable', hint, { cause: error });
  }
}

async function send(socketPath: string, { method, path, timeoutMs }: Question): Promise<string> {
  return await new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const outgoing = request({ socketPath, method, path, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
        // SAFETY: the socket's owner is the server's user, and root may be the client.
        if (text.length > MAX_CHARACTERS) outgoing.destroy(new Error('the answer of the server is too long'));
      });
      response.on('end', () => {
        if (response.statusCode === 200 && response.complete) resolve(text);
        else reject(readEnvelope(text) ?? new Error(`the server answered ${response.statusCode}`));
      });
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}
