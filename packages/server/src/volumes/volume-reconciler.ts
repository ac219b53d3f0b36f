import { PlatformError } from '@svc/contract';
import { pause } from '@svc/contract/node-pause';
import type { Logger } from 'pino';
import { listVolumesByWork, markGone, type VolumeRecord } from '../store/volumes.ts';
import { eachLimited } from '../tasks/each-limited.ts';
import { capacityMibOf, ensureMade, type VolumeMaker } from './make-volume.ts';
import { sampleVolumes } from './sample-volumes.ts';

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 2000;
const MAX_AT_ONCE = 4;

export interface VolumeReconcilerParts extends VolumeMaker {
  readonly sampleMs: number;
  readonly logger: Logger;
}

/**
 * Reconciles the engine's volumes with the records while the server runs: makes missing volumes, removes deleted
 * ones, resizes those whose capacity differs, and measures what they hold. Every step can be repeated, also by another server
 * at the same time, so that a server may end anywhere.
 */
export class VolumeReconciler {
  readonly #parts: VolumeReconcilerParts;
  #wake = new AbortController();

  constructor(parts: VolumeReconcilerParts) {
    this.#parts = parts;
  }

  /** Starts a round at once. */
  wake(): void {
    this.#wake.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      // Before the round, so that a call during it leads to another.
      this.#wake = new AbortController();
      const isSettled = await this.#round(signal);
      retryMs = isSettled ? FIRST_RETRY_MS : Math.min(retryMs * 2, LAST_RETRY_MS);
      const pauseMs = isSettled ? this.#parts.sampleMs : Math.min(retryMs, this.#parts.sampleMs);
      const wakeUp = AbortSignal.any([signal, this.#wake.signal]);
      await pause(pauseMs, wakeUp);
    }
  }

  /** @returns whether nothing is left to do */
  async #round(signal: AbortSignal): Promise<boolean> {
    const { database, logger } = this.#parts;
    try {
      const toMake = await listVolumesByWork(database, 'to make');
      const areMade = await this.#attempt(toMake, signal, (volume) =>
        ensureMade(this.#parts, volume, signal),
      );
      const toRemove = await listVolumesByWork(database, 'to remove');
      const areRemoved = await this.#attempt(toRemove, signal, (volume) => this.#remove(volume, signal));
      const areResized = await this.#resizeAll(signal);
      await sampleVolumes(this.#parts, signal);
      return areMade && areRemoved && areResized;
    } catch (error) {
      // The reconciler of sandboxes logs that the engine is away.
      if (!signal.aborted && !PlatformError.is(error, 'orchestrator_unreachable')) {
        logger.error({ err: error }, 'volumes could not be looked after');
      }
      return false;
    }
  }

  async #remove({ id }: VolumeRecord, signal: AbortSignal): Promise<void> {
    await this.#parts.volumeStore.removeVolume(id, signal);
    await markGone(this.#parts.database, id);
  }

  /** A server may have ended between the engine's change and the record's; the record counts. */
  async #resizeAll(signal: AbortSignal): Promise<boolean> {
    const { database, volumeStore } = this.#parts;
    const kept = await listVolumesByWork(database, 'kept');
    if (kept.length === 0) return true;
    const actual = new Map(
      (await volumeStore.listVolumes(signal)).map(({ id, capacityMib }) => [id, capacityMib]),
    );
    const toResize = kept.filter((volume) => {
      const has = actual.get(volume.id);
      return volume.capacityGib !== null && has !== undefined && has !== capacityMibOf(this.#parts, volume);
    });
    return await this.#attempt(toResize, signal, async (volume) => {
      await volumeStore.resizeVolume(volume.id, capacityMibOf(this.#parts, volume), signal);
    });
  }

  /** One volume that cannot be dealt with does not keep the others waiting. @returns whether all succeeded */
  async #attempt(
    volumes: readonly VolumeRecord[],
    signal: AbortSignal,
    work: (volume: VolumeRecord) => Promise<void>,
  ): Promise<boolean> {
    let areDone = true;
    await eachLimited(volumes, MAX_AT_ONCE, async (volume) => {
      signal.throwIfAborted();
      try {
        await work(volume);
      } catch (error) {
        if (signal.aborted || PlatformError.is(error, 'orchestrator_unreachable')) throw error;
        areDone = false;
        const isExpected =
          PlatformError.is(error, 'volume_in_use') || PlatformError.is(error, 'volume_not_found');
        if (!isExpected)
          this.#parts.logger.warn({ err: error, volumeId: volume.id }, 'a volume is not as it should be');
      }
    });
    return areDone;
  }
}
