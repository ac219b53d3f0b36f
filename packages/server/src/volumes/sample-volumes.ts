import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { latestSampleTimes, recordUsage, type VolumeSample } from '../store/volume-usage.ts';
import { listVolumesByWork } from '../store/volumes.ts';
import { eachLimited } from '../tasks/each-limited.ts';

const MAX_AT_ONCE = 4;
/** Fraction of the period after which a sample is due: timers are not exact, and another server's sample may be a little older. */
const DUE_AFTER = 0.9;
const BATCH = 100;

export interface SamplerParts {
  readonly database: Database;
  readonly volumeStore: Pick<VolumeStore, 'volumeUsage'>;
  readonly sampleMs: number;
  readonly logger: Logger;
}

/** Measures every volume without a sample in this period. @throws when the engine is away */
export async function sampleVolumes(parts: SamplerParts, signal: AbortSignal): Promise<void> {
  const { database, volumeStore, sampleMs, logger } = parts;
  const latest = await latestSampleTimes(database);
  const dueBefore = new Date(Date.now() - sampleMs * DUE_AFTER).toISOString();
  const due = (await listVolumesByWork(database, 'kept')).filter(
    ({ id }) => (latest.get(id) ?? '') < dueBefore,
  );
  const samples: VolumeSample[] = [];
  await eachLimited(due, MAX_AT_ONCE, async ({ id, organizationId }) => {
    try {
      const { usedBytes } = await volumeStore.volumeUsage(id, signal);
      samples.push({ volumeId: id, organizationId, at: new Date().toISOString(), usedBytes });
    } catch (error) {
      if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) throw error;
      logger.error({ err: error, volumeId: id }, 'a volume could not be measured');
    }
  });
  for (let start = 0; start < samples.length; start += BATCH) {
    await inTransaction(database, async (transaction) => {
      // Sorted, so that two servers lock rows in the same order and cannot deadlock.
      const batch = samples
        .slice(start, start + BATCH)
        .toSorted((a, b) => (a.volumeId < b.volumeId ? -1 : 1));
      for (const sample of batch) await recordUsage(transaction, sample);
    });
  }
}
