import { findExhaustedPool } from '../../accounting/check-quotas.ts';
import { countRunning, countSandboxesOf, readTerms } from '../../store/quotas.ts';
import { readSnapshotBytes } from '../../store/usage.ts';
import { readPoolUsage } from '../../accounting/pool-usage.ts';
import type { ImageStore } from '../../orchestrator/image-store.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';

const ASK_MS = 5000;

export function quotaHandlers(database: Database, imageStore: ImageStore): Pick<RestHandlers, 'quotas.get'> {
  return {
    'quotas.get': async (_input, { organization: { id } }) => {
      const [terms, used, total, running, snapshotBytes, imageBytes] = await Promise.all([
        readTerms(database, id),
        readPoolUsage(database, id, Date.now()),
        countSandboxesOf(database, id),
        countRunning(database, id),
        readSnapshotBytes(database, id),
        readImageBytes(imageStore, id),
      ]);
      return {
        hard_cap: terms.isHardCap,
        pool_exhausted: findExhaustedPool(terms, used) !== null,
        vcpu_hours_used: used.vcpuHours,
        memory_gib_hours_used: used.memoryGibHours,
        total_sandboxes: total,
        concurrent_ephemeral_running: running.ephemeral,
        concurrent_persistent_running: running.persistent,
        snapshot_storage_bytes: snapshotBytes,
        image_storage_bytes: imageBytes,
        is_suspended: terms.isSuspended,
        ...terms.limits,
      };
    },
  };
}

/** Null while the engine is away; the rest is shown without it. */
async function readImageBytes(imageStore: ImageStore, organizationId: string): Promise<number | null> {
  try {
    const { storedBytes } = await imageStore.listHeldImages(organizationId, AbortSignal.timeout(ASK_MS));
    return storedBytes;
  } catch {
    // After an error of the engine too: the other numbers do not depend on it.
    return null;
  }
}
