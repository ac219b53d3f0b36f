import { join } from 'node:path';
import { reseal } from '../secrets/reseal.ts';
import { Sealer } from '../secrets/sealer.ts';
import { followSecretsKeys, renewSecretsKeys } from '../secrets/secrets-key.ts';
import { withStore, type StorePlace } from './local-store.ts';

/**
 * Seals all secrets with a new key, or with the first one of the file when that was added by hand. Works while the server runs, which
 * rereads the file. A rotation that was interrupted is finished by the next one.
 * @returns how many
 */
export async function rotateSecrets(
  place: StorePlace,
  options: { readonly keyPath?: string | undefined; readonly isResealOnly: boolean },
): Promise<number> {
  const path = options.keyPath ?? join(place.dataFolder, 'server', 'secrets.key');
  const sealer = new Sealer(followSecretsKeys(path));
  return await withStore(place, async (database) => {
    // First seals everything with the current key, because older ones are removed from the file in the next step.
    const resealed = await reseal(database, sealer);
    if (options.isResealOnly) return resealed;
    await renewSecretsKeys(path);
    return await reseal(database, sealer);
  });
}
