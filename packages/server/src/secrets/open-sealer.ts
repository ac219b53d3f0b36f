import { PlatformError } from '@svc/contract';
import { EXIT } from '../host/exit-codes.ts';
import { StartError } from '../host/start-error.ts';
import type { Database } from '../store/database.ts';
import { Sealer } from './sealer.ts';
import { ensureSecretsKeys, followSecretsKeys } from './secrets-key.ts';
import { listStoredSecrets } from '../store/stored-secrets.ts';

/**
 * The sealer of a server. A lost key file is found here, and not when a sandbox starts without its secrets.
 * @throws StartError with the way out
 */
export async function openSealer(path: string, database: Database): Promise<Sealer> {
  try {
    await ensureSecretsKeys(path);
  } catch (error) {
    throw PlatformError.is(error) ? new StartError(EXIT.failed, error.message, { cause: error }) : error;
  }
  const sealer = new Sealer(followSecretsKeys(path));
  const lost = (await listStoredSecrets(database)).filter(({ sealed }) => !sealer.canOpen(sealed)).length;
  if (lost === 0) return sealer;
  const hint = `${lost} secrets in the database were sealed with a key that is not in ${path}; add the key to that file`;
  throw new StartError(EXIT.failed, hint);
}
