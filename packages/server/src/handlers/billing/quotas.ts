import { findExhaustedPool } from '../../accounting/require-room.ts';
import { countRunning, countSandboxesOf, readTerms } from '../../store/quotas.ts';
import { readSnapshotBytes } from '../../store/usage.ts';
import { readPoolUsage } from '../../accounting/pool-usage.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';

export function quotaHandlers(database: Database): Pick<RestHandlers, 'quotas.get'> {
  return {
    'quotas.get': async (_input, { organization: { id } }) => {
      const [terms, used, total, running, snapshotBytes] = await Promise.all([
        readTerms(database, id),
        readPoolUsage(database, id, Date.now()),
        countSandboxesOf(database, id),
        countRunning(database, id),
        readSnapshotBytes(database, id),
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
        is_suspended: terms.isSuspended,
        ...terms.limits,
      };
    },
  };
}
