import type { CreateSnapshot, SnapshotView } from '@svc/contract/orchestrator';

/**
 * The part of the orchestrator that keeps snapshots of disks.
 * - Ids are chosen by the caller. `createSnapshot` with an id that exists is `name_already_exists`; with a sandbox that does not exist
 *   it is `sandbox_not_found`. The sandbox must not be starting or stopping; one that runs runs on. An aborted call leaves nothing.
 * - `getSnapshot` of an unknown id is `snapshot_not_found`.
 * - `removeSnapshot` is always allowed, since sandboxes have copies of their own, and succeeds when the snapshot is gone.
 * - When the orchestrator is away every call fails with `orchestrator_unreachable`.
 */
export interface SnapshotStore {
  createSnapshot(request: CreateSnapshot, signal?: AbortSignal): Promise<SnapshotView>;
  getSnapshot(id: string, signal?: AbortSignal): Promise<SnapshotView>;
  listSnapshots(signal?: AbortSignal): Promise<readonly SnapshotView[]>;
  removeSnapshot(id: string, signal?: AbortSignal): Promise<void>;
}
