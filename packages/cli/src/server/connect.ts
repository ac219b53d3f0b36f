import { Client, Sandbox } from '@svc/sdk';
import { nodeFetch } from '@svc/sdk/node';
import { resolveServer } from '../context/resolve-server.ts';
import type { Globals } from '../globals.ts';
import { watchedFetch } from './watched-fetch.ts';

/** A client of the server that the command line, the environment or the active context names. Connects at the first call. */
export async function connectServer(globals: Globals): Promise<Client> {
  const { url, apiKey = '', organization } = await resolveServer(globals);
  return new Client({
    apiUrl: url,
    // Empty instead of absent, like the organization: otherwise the client would read the environment itself.
    apiKey,
    organization: organization ?? '',
    // At a terminal an early error is better than a long wait.
    maxRetries: 1,
    fetch: watchedFetch(nodeFetch, `${url.replace(/\/+$/, '')}/api/v1/health`, globals.serverTimeoutMs),
  });
}

/** The sandbox of this name in any state. */
export async function connectSandbox(globals: Globals, name: string): Promise<Sandbox> {
  return await Sandbox.connect(name, { client: await connectServer(globals) });
}
