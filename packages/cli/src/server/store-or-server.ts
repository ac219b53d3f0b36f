import type { Client } from '@svc/sdk';
import type { Command } from 'commander';
import { chosenUrl, isHere } from '../context/require-here.ts';
import { resolveServer } from '../context/resolve-server.ts';
import { readLocal, type LocalCommand } from '../local-store.ts';

const TOKEN = /^svc_pat_/;

export interface CredentialCommand extends LocalCommand {
  /** The chosen server; undefined: the local store is used. */
  readonly server: Client | undefined;
}

/**
 * Chooses the place of credentials: the local store, or a chosen server. With a user's token also the local server is called as
 * that user; without a token the command works on its store.
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
