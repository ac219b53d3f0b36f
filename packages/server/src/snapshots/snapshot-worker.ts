import { randomUUID } from 'node:crypto';
import { PlatformError } from '@svc/contract';
import { pause } from '@svc/contract/node-pause';
import type { SnapshotView } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { SnapshotStore } from '../orchestrator/snapshot-store.ts';
import type { Database } from '../store/database.ts';
import { inTransaction } from '../store/in-transaction.ts';
import { appendEvent } from '../store/events.ts';
import { checkSnapshotQuota } from '../accounting/check-quotas.ts';
import { lockLivingOrganization } from '../store/lock-organization.ts';
import {
  claimSnapshotOperation,
  endSnapshotOperation,
  extendSnapshotClaim,
  findRemovedSnapshots,
  findSnapshot,
  insertSnapshot,
  releaseSnapshotOperation,
  removeSnapshot,
  type SnapshotOperationRecord,
} from '../store/snapshots.ts';

const SCHEMA = 'svc.snapshot/v1';

const IDLE_MS = 5000;
const LEASE_MS = 15_000;
const RENEW_MS = 3000;

export interface SnapshotWorkerParts {
  readonly database: Database;
  readonly store: SnapshotStore;
  readonly logger: Logger;
}

/**
 * Makes the snapshots that were asked for, one after the other, and clears away those that were removed. An operation
 * that another server left behind is taken up again: the snapshot's id is chosen before, so it is never made twice.
 */
export class SnapshotWorker {
  readonly #parts: SnapshotWorkerParts;
  readonly #owner = randomUUID();
  #wake = Promise.withResolvers<void>();

  constructor(parts: SnapshotWorkerParts) {
    this.#parts = parts;
  }

  /** Starts a round at once. */
  wake(): void {
    this.#wake.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      const didWork = await this.#step(signal);
      if (didWork) continue;
      await Promise.race([this.#wake.promise, pause(IDLE_MS, signal)]);
    }
  }

  /** @returns whether to look again at once. */
  async #step(signal: AbortSignal): Promise<boolean> {
    const { database, logger } = this.#parts;
    try {
      const operation = await claimSnapshotOperation(database, this.#owner, LEASE_MS);
      if (operation !== undefined) return await this.#work(operation, signal);
      await this.#clearAway(signal);
    } catch (error) {
      // An engine that is away is nothing new: the reconciler says so.
      if (!signal.aborted && !PlatformError.is(error, 'orchestrator_unreachable')) {
        logger.error({ err: error }, 'snapshots could not be worked on');
      }
    }
    return false;
  }

  async #work(operation: SnapshotOperationRecord, signal: AbortSignal): Promise<boolean> {
    const { database, logger } = this.#parts;
    const renewal = setInterval(() => {
      // One that fails is tried again long before the lease is over.
      extendSnapshotClaim(database, operation.id, this.#owner, LEASE_MS).catch(() => undefined);
    }, RENEW_MS);
    try {
      const view = await this.#make(operation, signal);
      await this.#finish(operation, view);
      return true;
    } catch (error) {
      const isLater = signal.aborted || PlatformError.is(error, 'orchestrator_unreachable');
      if (isLater) {
        await releaseSnapshotOperation(database, operation.id);
        return false;
      }
      logger.warn({ err: error, operationId: operation.id }, 'a snapshot could not be made');
      const failure = PlatformError.is(error)
        ? { code: error.code, message: error.message }
        : { code: 'internal', message: 'the snapshot could not be made; the log of the server says why' };
      await endSnapshotOperation(database, operation.id, failure);
      return true;
    } finally {
      clearInterval(renewal);
    }
  }

  async #make(
    { snapshotId, sandboxId }: SnapshotOperationRecord,
    signal: AbortSignal,
  ): Promise<SnapshotView> {
    const { store } = this.#parts;
    try {
      return await store.createSnapshot({ id: snapshotId, sandboxId }, signal);
    } catch (error) {
      // Made before a server ended, which could not write it down any more.
      if (PlatformError.is(error, 'name_already_exists')) return await store.getSnapshot(snapshotId, signal);
      throw error;
    }
  }

  async #finish(operation: SnapshotOperationRecord, view: SnapshotView): Promise<void> {
    const { organizationId, snapshotId, snapshotName, sandboxId, sandboxName, labels } = operation;
    await inTransaction(this.#parts.database, async (transaction) => {
      // A snapshot of a deleted organization is removed like one that failed.
      const organization = await lockLivingOrganization(transaction, organizationId);
      const taken = await findSnapshot(transaction, organizationId, { name: snapshotName });
      if (taken !== undefined && !operation.shouldReplace) {
        throw new PlatformError('name_already_exists', `Snapshot '${snapshotName}' exists already`);
      }
      if (taken !== undefined) await removeSnapshot(transaction, taken.id);
      // How much it takes is known only now; many may have been asked for while there was room for one.
      await checkSnapshotQuota(transaction, organization, view.storedBytes);
      await insertSnapshot(transaction, {
        id: snapshotId,
        organizationId,
        name: snapshotName,
        sandboxId,
        sandboxName,
        digest: view.digest,
        sizeBytes: view.storedBytes,
        manifest: describeManifest(view, labels, sandboxName),
        labels,
        createdAt: view.createdAt,
      });
      await endSnapshotOperation(transaction, operation.id, null);
      await appendEvent(transaction, {
        organizationId,
        type: 'snapshot_created',
        category: 'snapshot',
        actor: { kind: 'system', code: 'snapshots', label: 'Snapshot worker' },
        payload: { snapshot_id: snapshotId, name: snapshotName, sandbox_id: sandboxId, digest: view.digest },
        requestId: null,
        sourceAddress: null,
      });
    });
  }

  async #clearAway(signal: AbortSignal): Promise<void> {
    const { database, store } = this.#parts;
    const ids = (await store.listSnapshots(signal)).map(({ id }) => id);
    for (const id of await findRemovedSnapshots(database, ids)) await store.removeSnapshot(id, signal);
  }
}

/** What a snapshot was made of, in the words of the public API. */
function describeManifest(
  view: SnapshotView,
  labels: Readonly<Record<string, string>>,
  sandboxName: string,
): Readonly<Record<string, unknown>> {
  return {
    schema: SCHEMA,
    artifact: 'disk',
    scope: 'disk',
    created_at: view.createdAt,
    image: { ref: view.image.reference, manifest_digest: view.image.id },
    state: {
      type: 'file',
      format: 'raw',
      fstype: 'ext4',
      upper: { file: 'disk', size_bytes: view.sizeBytes, integrity: view.digest },
    },
    labels,
    extensions: {},
    requires: [],
    parent: null,
    source_sandbox: sandboxName,
  };
}
