import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract';
import type { EventKind } from '@svc/contract/rest';
import { pino } from 'pino';
import { prepareFolders } from '../host/prepare-folders.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { appendEvent, type Actor, type NewEvent } from '../store/events.ts';
import { openDatabase } from '../store/open-database.ts';
import { requireNoted } from '../store/store-note.ts';
import { findOrganization, type OrganizationRecord } from '../store/organizations.ts';

/** The place of a server's store, as seen from its machine. */
export interface StorePlace {
  readonly dataFolder: string;
  /** The server's database, when it does not use its own file. */
  readonly databaseUrl?: string | undefined;
}

/** The actor in events: a user who can read and write the store directly. */
export const CLI_ACTOR: Actor = { kind: 'system', code: 'cli', label: 'svc command line' };

/** Opens the store of a server, running or not, as the current user: root calls `becomeServerUser` first. */
export async function withStore<Result>(
  { dataFolder, databaseUrl }: StorePlace,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const serverFolder = join(dataFolder, 'server');
  if (databaseUrl === undefined) {
    await prepareFolders({ dataFolder, serverFolder }, null);
    await requireAccess(serverFolder);
  }
  const store = { databaseUrl: databaseUrl ?? null, serverFolder };
  await requireNoted(store);
  await using database = await openDatabase(store, pino({ level: 'silent' }));
  return await work(database);
}

/** In one transaction, like every change of the server. */
export async function changeStore<Result>(
  place: StorePlace,
  work: (transaction: Database) => Promise<Result>,
): Promise<Result> {
  return await withStore(place, (database) => inTransaction(database, work));
}

export async function recordFromCli(
  transaction: Database,
  event: EventKind & Pick<NewEvent, 'organizationId' | 'payload'>,
): Promise<void> {
  await appendEvent(transaction, { ...event, actor: CLI_ACTOR, requestId: null, sourceAddress: null });
}

export async function requireOrganization(db: Database, slug: string): Promise<OrganizationRecord> {
  const organization = await findOrganization(db, slug);
  if (organization !== undefined) return organization;
  throw new PlatformError(
    'org_not_found',
    `There is no organization '${slug}'; make it with: svc org create`,
  );
}

async function requireAccess(serverFolder: string): Promise<void> {
  try {
    await access(serverFolder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const hint = `the store in ${serverFolder} belongs to another user; run this command as that user or as root`;
    throw new PlatformError('forbidden', hint, { cause: error });
  }
}
