import type { Network, Slot } from '../network/network.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import type { EngineRecord } from './record.ts';

/**
 * Lets the second record's policy hold in place of the first one's, and saves it. When it cannot be saved the first one holds on; an
 * engine that ends in between goes on with what is saved.
 */
export async function changeNetwork(
  network: Network,
  slot: Slot | null,
  [before, after]: readonly [EngineRecord, EngineRecord],
  save: () => Promise<void>,
): Promise<void> {
  if (slot === null) return await save();
  await network.setPolicy(slot, resolvePolicy(after.spec.network));
  try {
    await save();
  } catch (error) {
    await network.setPolicy(slot, resolvePolicy(before.spec.network));
    throw error;
  }
}
