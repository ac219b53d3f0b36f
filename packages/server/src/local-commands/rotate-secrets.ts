import { join } from 'node:path';
import { reseal } from '../secrets/reseal.ts';
import { Sealer } from '../secrets/sealer.ts';
import { followSecretsKeys, renewSecretsKeys } from '../secrets/secrets-key.ts';
import { withStore, type StorePlace } from './local-store.ts';

/**
 * Seals all secrets with a new key, or with the first one of the file when that was put there by hand. Works while the
 * server runs, which follows the file. A rotation that was cut short is finished by the next one. @returns how many
 */
export async function rotateSecrets(
  place: StorePlace,
  options: { readonly keyPath?: string | undefined; readonly isResealOnly: boolean },
): Promise<number> {
  const path = options.keyPath ?? join(place.dataFolder, 'server', 'secrets.key');
  const sealer = new Sealer(followSecretsKeys(path));
  return await withStore(place, async (database) => {
    // First everything to the present key, as older ones leave the file with the next step.
    const resealed = await reseal(database, sealer);
    if (options.isResealOnly) return resealed;
    await renewSecretsKeys(path);
    return await reseal(database, sealer);
  });
}
