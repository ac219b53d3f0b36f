import type { Globals } from '../globals.ts';
import { readContexts, requireContext } from './context-file.ts';
import { readKey } from './read-key.ts';

export interface ServerPlace {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly organization: string | undefined;
  /** Who says so, for people. */
  readonly source: string;
}

export const LOCAL_URL = 'http://127.0.0.1:5555';

/**
 * Which server a command talks to: the one that is named on the command line, else that of the environment, else the
 * active context, else the one on this machine.
 */
export async function resolveServer(globals: Globals): Promise<ServerPlace> {
  const place = await findPlace(globals);
  return { ...place, organization: globals.chosenOrganization ?? place.organization };
}

async function findPlace(globals: Globals): Promise<ServerPlace> {
  const { context, apiUrl, apiKey, organization, contextFolder } = globals;
  if (context !== undefined) return await placeOf(globals, context);
  if (apiUrl !== undefined) return { url: apiUrl, apiKey, organization, source: 'SVC_API_URL' };
  // A data folder that was named for this call means its own server.
  const active = globals.isFolderChosen ? null : (await readContexts(contextFolder)).active;
  if (active !== null) return await placeOf(globals, active);
  return { url: await localUrl(globals), apiKey, organization, source: 'this machine' };
}

/** SAFETY: a key of the environment is not for the server of a context: it would be handed to somebody else. */
async function placeOf(globals: Globals, name: string): Promise<ServerPlace> {
  const { url, apiKeyRef, organization } = requireContext(await readContexts(globals.contextFolder), name);
  const apiKey = apiKeyRef === undefined ? undefined : await readKey(apiKeyRef, globals);
  return { url, apiKey, organization, source: `context ${name}` };
}

/** A server on a data folder of its own may listen on any port, and tells those who may ask. */
async function localUrl({ isFolderChosen, dataFolder }: Globals): Promise<string> {
  if (!isFolderChosen) return LOCAL_URL;
  const { readStatus } = await import('@svc/server/admin');
  // Who may not ask it may still talk to it, where servers usually are.
  const status = await readStatus(dataFolder).catch(() => null);
  if (status === null) return LOCAL_URL;
  if (status !== undefined) return status.url;
  const { SvcError } = await import('@svc/sdk');
  throw new SvcError(
    'connection_failed',
    `No server runs on ${dataFolder}; it is started by \`svc server start --dev\``,
  );
}
