import { randomUUID } from 'node:crypto';
import type { CreateSnapshotOptions, ListSnapshotsOptions } from '@computesdk/provider';
import { Sandbox, type Client, type RestCallOutput } from '@svc/sdk';

/** A snapshot of a disk, as ComputeSDK shows it. Sandboxes are made from it by its `id`, as `snapshotId`. */
export interface SvcSnapshot {
  readonly id: string;
  readonly provider: 'svc';
  readonly createdAt: Date;
  readonly metadata: Readonly<Record<string, string>>;
}

type Snapshot = RestCallOutput<'snapshots.get'>;

const PAGE = 100;

export class SvcSnapshots {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async create(sandboxId: string, options: CreateSnapshotOptions = {}): Promise<SvcSnapshot> {
    const { name = `computesdk-${randomUUID()}`, metadata = {} } = options;
    const sandbox = await Sandbox.connect(sandboxId, { client: this.#client });
    return toSnapshot(await sandbox.snapshot(name, { labels: metadata }));
  }

  /** Newest first. */
  async list({ sandboxId, limit = Infinity }: ListSnapshotsOptions = {}): Promise<SvcSnapshot[]> {
    const kept: SvcSnapshot[] = [];
    for await (const snapshot of this.#all()) {
      if (kept.length >= limit) break;
      if (sandboxId === undefined || snapshot.sandbox_id === sandboxId) kept.push(toSnapshot(snapshot));
    }
    return kept;
  }

  async remove(snapshotId: string): Promise<void> {
    await this.#client.call('snapshots.remove', { params: { snapshot_id: snapshotId } });
  }

  async *#all(): AsyncGenerator<Snapshot, void> {
    let place: { readonly cursor?: string } = {};
    for (;;) {
      const page = await this.#client.call('snapshots.list', { query: { limit: PAGE, ...place } });
      yield* page.data;
      if (page.next_cursor === null) return;
      place = { cursor: page.next_cursor };
    }
  }
}

function toSnapshot({ id, name, labels, created_at }: Snapshot): SvcSnapshot {
  return { id, provider: 'svc', createdAt: new Date(created_at), metadata: { ...labels, name } };
}
