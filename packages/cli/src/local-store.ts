import { PlatformError } from '@svc/contract/errors';
import { Option, type Command } from 'commander';
import type { StorePlace } from '@svc/server/local';
import { readGlobals, type Globals } from './globals.ts';
import { UsageError } from './usage-error.ts';

/** Of commands that work on the store of the server on this machine. */
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

/** What the store finds fault with is what was typed. */
export function asUsage(error: unknown): never {
  throw PlatformError.is(error, 'invalid_request') ? new UsageError(error.message) : error;
}
