import type { Client } from '@svc/sdk';
import type { Command } from 'commander';
import { chosenUrl, isHere } from '../context/require-here.ts';
import { resolveServer } from '../context/resolve-server.ts';
import { readLocal, type LocalCommand } from '../local-store.ts';

const TOKEN = /^svc_pat_/;

export interface CredentialCommand extends LocalCommand {
  /** The server that was chosen; undefined: the store of this machine is worked on. */
  readonly server: Client | undefined;
}

/**
 * Where credentials are kept: in the store of this machine, or by a server that was chosen. One on this machine that is asked
 * with a user's token is asked as that user; whoever has no token works on its store.
 */
export async function readStoreOrServer(command: Command): Promise<CredentialCommand> {
  const local = readLocal(command);
  const { database } = command.opts<{ database?: string }>();
  const url = database === undefined ? await chosenUrl(local) : undefined;
  if (url === undefined) return { ...local, server: undefined };
  const isAsked = !isHere(url) || TOKEN.test((await resolveServer(local)).apiKey ?? '');
  if (!isAsked) return { ...local, server: undefined };
  const { connectServer } = await import('./connect.ts');
  return { ...local, server: await connectServer(local) };
}
