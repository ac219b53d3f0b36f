import { PlatformError } from '@svc/contract';
import type { SnapshotView } from '@svc/contract/orchestrator';
import type { SnapshotStore } from '../orchestrator/snapshot-store.ts';

/** Keeps the names of snapshots in memory. `isAway` acts as an engine that cannot be reached. */
export class FakeSnapshotStore implements SnapshotStore {
  readonly #snapshots = new Map<string, SnapshotView>();
  isAway = false;
  /** The error of the next snapshot. */
  nextFailure: Error | null = null;

  async createSnapshot(request: { readonly id: string; readonly sandboxId: string }): Promise<SnapshotView> {
    await this.#answer();
    if (this.nextFailure !== null) {
      const failure = this.nextFailure;
      this.nextFailure = null;
      throw failure;
    }
    if (this.#snapshots.has(request.id)) throw new PlatformError('name_already_exists', 'it exists');
    const snapshot: SnapshotView = {
      ...request,
      image: { reference: 'python', id: 'sha256:1' },
      diskSizeMib: 4096,
      sizeBytes: 4096 * 1024 * 1024,
      storedBytes: 65_536,
      digest: `sha256:${'0'.repeat(64)}`,
      createdAt: new Date().toISOString(),
    };
    this.#snapshots.set(request.id, snapshot);
    return snapshot;
  }

  async getSnapshot(id: string): Promise<SnapshotView> {
    await this.#answer();
    const found = this.#snapshots.get(id);
    if (found === undefined) throw new PlatformError('snapshot_not_found', `there is no snapshot ${id}`);
    return found;
  }

  async listSnapshots(): Promise<readonly SnapshotView[]> {
    await this.#answer();
    return [...this.#snapshots.values()];
  }

  async removeSnapshot(id: string): Promise<void> {
    await this.#answer();
    this.#snapshots.delete(id);
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    if (this.isAway) throw new PlatformError('orchestrator_unreachable', 'the engine does not answer');
  }
}
