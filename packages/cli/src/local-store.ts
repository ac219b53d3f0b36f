import { flushCompileCache } from 'node:module';
import { PlatformError } from '@svc/contract/errors';
import { Option, type Command } from 'commander';
import type { createKey } from '@svc/server/keys';
import type * as Local from '@svc/server/local';
import type { StorePlace } from '@svc/server/local';
import { requireHere } from './context/require-here.ts';
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

/** As `readLocal`, for what a server elsewhere has too. @throws UsageError when such a server was chosen */
export async function readHere(command: Command, what: string): Promise<LocalCommand> {
  const local = readLocal(command);
  const { database } = command.opts<{ database?: string }>();
  if (database === undefined) await requireHere(local, what, 'the same command there, with sudo');
  return local;
}

/**
 * What works on the store of the server on this machine. SAFETY: as the server's user, never as root, who would follow whatever links
 * that user has put there; for good, so it is the last thing to do before the work.
 */
export async function loadLocal(place: StorePlace): Promise<typeof Local> {
  const local = await import('@svc/server/local');
  await finishLoading();
  await local.becomeServerUser(place);
  return local;
}

/** As `loadLocal`, for what makes keys: these are files of the server in any case. */
export async function loadKeys(place: StorePlace): Promise<{ readonly createKey: typeof createKey }> {
  const keys = await import('@svc/server/keys');
  await finishLoading();
  await keys.becomeServerUser(place, { needsFolder: true });
  return keys;
}

/**
 * The program may be where the server's user cannot read, and whatever goes wrong is told. Nor can that user write down what was
 * compiled, which would then be compiled for each command anew: three times the CPU.
 */
async function finishLoading(): Promise<void> {
  await import('./terminal/report-error.ts');
  flushCompileCache();
}

/** What the store finds fault with is what was typed. */
export function asUsage(error: unknown): never {
  throw PlatformError.is(error, 'invalid_request') ? new UsageError(error.message) : error;
}
