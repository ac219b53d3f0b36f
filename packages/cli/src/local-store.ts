import { flushCompileCache } from 'node:module';
import { PlatformError } from '@svc/contract/errors';
import { Option, type Command } from 'commander';
import type { createKey } from '@svc/server/keys';
import type * as Local from '@svc/server/local';
import type { StorePlace } from '@svc/server/local';
import { requireHere } from './context/require-here.ts';
import { readGlobals, type Globals } from './globals.ts';
import { UsageError } from './usage-error.ts';

/** Options of commands that work on the store of the local server. */
export function databaseOption(): Option {
  return new Option('--database <url>', 'as for svc server start').env('SVC_DATABASE_URL');
}

export interface LocalCommand extends Globals {
  readonly place: StorePlace;
}

export function readLocal(command: Command): LocalCommand {
  const globals = readGlobals(command);
  const { database } = command.opts<{ database?: string }>();
  return { ...globals, place: { dataFolder: globals.dataFolder, databaseUrl: database } };
}

/** Like `readLocal`, for operations that remote servers have too. @throws UsageError when a remote server was chosen */
export async function readHere(command: Command, what: string): Promise<LocalCommand> {
  const local = readLocal(command);
  const { database } = command.opts<{ database?: string }>();
  if (database === undefined) await requireHere(local, what, 'the same command there, with sudo');
  return local;
}

/**
 * Loads the functions for the store of the local server. SAFETY: the process becomes the server's user, because root would follow
 * links that this user may have placed there. The change is permanent, so this is the last step before the work.
 */
export async function loadLocal(place: StorePlace): Promise<typeof Local> {
  const local = await import('@svc/server/local');
  await finishLoading();
  await local.becomeServerUser(place);
  return local;
}

/** Like `loadLocal`, for creating keys, which always are files of the server. */
export async function loadKeys(place: StorePlace): Promise<{ readonly createKey: typeof createKey }> {
  const keys = await import('@svc/server/keys');
  await finishLoading();
  await keys.becomeServerUser(place, { needsFolder: true });
  return keys;
}

/**
 * Loads the rest of the program before the change of user: the server's user may not be able to read it, also for reporting an
 * error. That user cannot write the compile cache either, and without it each command takes three times the CPU.
 */
async function finishLoading(): Promise<void> {
  await import('./terminal/report-error.ts');
  flushCompileCache();
}

/** Converts an invalid request of the store to a usage error, because its input is the command line. */
export function asUsage(error: unknown): never {
  throw PlatformError.is(error, 'invalid_request') ? new UsageError(error.message) : error;
}
