import type { Globals } from '../globals.ts';
import { readContexts, requireContext } from './context-file.ts';
import { readKey } from './read-key.ts';

export interface ServerPlace {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly organization: string | undefined;
  /** The origin of the choice, for messages. */
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
  // A data folder that was named for this call implies its own server.
  const active = globals.isFolderChosen ? null : (await readContexts(contextFolder)).active;
  if (active !== null) return await placeOf(globals, active);
  return { url: await localUrl(globals), apiKey, organization, source: 'this machine' };
}

/** SAFETY: a key of the environment is not sent to the server of a context, which may be a different server. */
async function placeOf(globals: Globals, name: string): Promise<ServerPlace> {
  const { url, apiKeyRef, organization } = requireContext(await readContexts(globals.contextFolder), name);
  const apiKey = apiKeyRef === undefined ? undefined : await readKey(apiKeyRef, globals);
  return { url, apiKey, organization, source: `context ${name}` };
}

/** A server on its own data folder may listen on any port; its admin socket tells which. */
async function localUrl({ isFolderChosen, dataFolder }: Globals): Promise<string> {
  if (!isFolderChosen) return LOCAL_URL;
  const { readStatus } = await import('@svc/server/admin');
  // Without access to the admin socket the default address is tried.
  const status = await readStatus(dataFolder).catch(() => null);
  if (status === null) return LOCAL_URL;
  if (status !== undefined) return status.url;
  const { SvcError } = await import('@svc/sdk');
  throw new SvcError(
    'connection_failed',
    `No server runs on ${dataFolder}; it is started by \`svc server start --dev\``,
  );
}
