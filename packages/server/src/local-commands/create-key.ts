import { join } from 'node:path';
import { ALL_NAMESPACES, PlatformError } from '@svc/contract';
import { pino } from 'pino';
import { parseDurationMs } from '../access/duration.ts';
import { isScope, signKey } from '../access/signed-keys.ts';
import { ensureSigningKey } from '../access/signing-key.ts';
import { prepareFolders } from '../host/prepare-folders.ts';
import { recordKey } from '../store/signed-keys.ts';
import { openDatabase } from '../store/open-database.ts';
import { requireNoted } from '../store/store-note.ts';

export { becomeServerUser } from './become-server-user.ts';

export interface CreatedKey {
  readonly key: string;
  /** One namespace, or `*` for all. */
  readonly namespace: string;
  /** Null: never. */
  readonly expiresAt: string | null;
}

/** Makes a key for the server with this data folder, running or not. Keys made earlier stay valid. */
export async function createKey(
  dataFolder: string,
  request: {
    readonly expire?: string | undefined;
    readonly namespace?: string | undefined;
    /** The server's database, when it does not use its own file. */
    readonly databaseUrl?: string | undefined;
  },
): Promise<CreatedKey> {
  const namespace = request.namespace ?? ALL_NAMESPACES;
  if (!isScope(namespace)) {
    const rule = '1–63 letters, digits, hyphens or underscores, the first one a letter or digit, or *';
    throw new PlatformError('invalid_request', `'${namespace}' is no namespace: ${rule}`);
  }
  const lifetimeMs = request.expire === undefined ? null : parseDurationMs(request.expire);
  const createdAt = new Date();
  // Tokens count whole seconds; rounded, so that the time that is shown is the time that is checked.
  const expiresAt =
    lifetimeMs === null ? null : new Date(Math.floor((createdAt.getTime() + lifetimeMs) / 1000) * 1000);
  const serverFolder = join(dataFolder, 'server');
  const store = { databaseUrl: request.databaseUrl ?? null, serverFolder };
  await requireNoted(store);
  await prepareFolders({ dataFolder, serverFolder }, null);
  const signingKey = await ensureSigningKey(serverFolder);
  const key = await signKey(signingKey, { namespace, createdAt, expiresAt });
  const shown = expiresAt?.toISOString() ?? null;
  await using database = await openDatabase(store, pino({ level: 'silent' }));
  await recordKey(database, key, { namespace, createdAt: createdAt.toISOString(), expiresAt: shown });
  return { key, namespace, expiresAt: shown };
}
