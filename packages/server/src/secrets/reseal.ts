import type { Database } from '../store/database.ts';
import type { Sealer } from './sealer.ts';
import { listStoredSecrets } from '../store/stored-secrets.ts';

/** Seals every value again that was not sealed with the first key. Safe to repeat, and while servers run. @returns how many */
export async function reseal(database: Database, sealer: Sealer): Promise<number> {
  const stale = (await listStoredSecrets(database)).filter(({ sealed }) => sealer.isStale(sealed));
  for (const secret of stale) {
    const { sealed, context } = secret;
    await secret.replace(sealer.seal(sealer.open(sealed, context), context));
  }
  return stale.length;
}
