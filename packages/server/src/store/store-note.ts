import { access, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract';
import { isErrno } from '@svc/contract/errno';
import type { StorePlace } from './open-database.ts';

const NOTE = 'store-is-elsewhere';

/** Records which store the server uses, because CLI commands on its machine do not have its configuration. */
export async function noteStore({ databaseUrl, serverFolder }: StorePlace): Promise<void> {
  const note = join(serverFolder, NOTE);
  if (databaseUrl === null) return await rm(note, { force: true });
  await writeFile(note, 'The rows of this server are in PostgreSQL.\n', { flag: 'wx' }).catch(
    (error: unknown) => {
      if (!isErrno(error, 'EEXIST')) throw error;
    },
  );
}

/**
 * Refuses a store that is not the server's: the server would never read what a command writes there. @throws
 * PlatformError
 */
export async function requireNoted({ databaseUrl, serverFolder }: StorePlace): Promise<void> {
  if (databaseUrl !== null) return;
  const isElsewhere = await access(join(serverFolder, NOTE)).then(
    () => true,
    () => false,
  );
  if (!isElsewhere) return;
  const message = 'the rows of this server are in PostgreSQL, and no database was named';
  const remedy =
    'set SVC_DATABASE_URL to what the server has; with systemd: set -a; . /etc/default/svc; set +a';
  throw new PlatformError('invalid_request', `${message}\n  try: ${remedy}`);
}
