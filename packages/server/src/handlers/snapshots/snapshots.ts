import { PlatformError } from '@svc/contract';
import type { Snapshot } from '@svc/contract/rest';
import { checkSnapshotQuota } from '../../accounting/check-quotas.ts';
import type { Database } from '../../store/database.ts';
import { findOwnSandbox, type SandboxRecord } from '../../store/sandboxes.ts';
import { listSnapshotCandidates } from '../../store/snapshot-candidates.ts';
import {
  countPendingOperations,
  findSnapshot,
  findSnapshotOperation,
  insertSnapshotOperation,
  listSnapshotOperations,
  listSnapshots,
  removeSnapshot,
  type SnapshotOperationRecord,
  type SnapshotRecord,
} from '../../store/snapshots.ts';
import { MAX_PENDING_SNAPSHOTS, requireFewer } from '../../accounting/caps.ts';
import { readPage, toPage } from '../../dispatch/paging.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import { viewFor } from '../sandboxes/sandbox-view.ts';
import { snapshotViewFor } from './snapshot-view.ts';
import { requireFreeLabels } from '../volumes/volume-checks.ts';

type SnapshotHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `snapshots.${string}`>>;

export interface SnapshotParts {
  readonly database: Database;
  readonly health: EngineHealth;
  readonly storage: HostStorage;
  /** Notified when a snapshot is to be made or removed. */
  readonly snapshotWorker: { wake(): void };
}

export function snapshotHandlers(parts: SnapshotParts): SnapshotHandlers {
  const { database } = parts;
  return {
    ...readHandlers(database),
    'snapshots.create': async ({ body }, call) => {
      requireEngine(parts.health);
      await parts.storage.require();
      const operation = await call.commit(
        async ({ db, record }) => {
          const { id: organizationId } = call.organization;
          const sandbox = await requireEligible(db, organizationId, body.sandbox_id);
          requireEngine(parts.health, undefined, sandbox.node);
          if ((body.dest_dir ?? null) !== null) {
            throw ineligible('dest_dir must be null: snapshots are kept in managed storage');
          }
          const taken = await findSnapshot(db, organizationId, { name: body.name });
          if (taken !== undefined && body.force !== true) throw nameTaken(body.name);
          await checkSnapshotQuota(db, call.organization);
          const pending = await countPendingOperations(db, organizationId);
          requireFewer('max_pending_snapshots', pending, MAX_PENDING_SNAPSHOTS);
          const made = await insertSnapshotOperation(db, {
            organizationId,
            snapshotName: body.name,
            sandboxId: sandbox.id,
            sandboxName: sandbox.name,
            labels: requireFreeLabels(body.labels ?? {}),
            shouldReplace: body.force ?? false,
          });
          const payload = { operation_id: made.id, name: body.name, sandbox_id: sandbox.id };
          await record({ type: 'snapshot_requested', category: 'snapshot', payload });
          return made;
        },
        (made) => toOperation(made, null, snapshotViewFor(call)),
      );
      parts.snapshotWorker.wake();
      return toOperation(operation, null, snapshotViewFor(call));
    },
    'snapshots.removeByName': ({ params }, call) => remove(parts, call, { name: params.name }),
    'snapshots.remove': ({ params }, call) => remove(parts, call, { id: params.snapshot_id }),
  };
}

function readHandlers(
  database: Database,
): Omit<SnapshotHandlers, 'snapshots.create' | 'snapshots.remove' | 'snapshots.removeByName'> {
  const resultOf = async ({ status, organizationId, snapshotId }: SnapshotOperationRecord) =>
    status === 'succeeded'
      ? ((await findSnapshot(database, organizationId, { id: snapshotId })) ?? null)
      : null;
  return {
    'snapshots.candidates': async ({ query }, call) => {
      const page = readPage(query, 'snapshot-candidates', 2);
      const rows = await listSnapshotCandidates(database, call.organization.id, page);
      return toPage(rows, page, 'snapshot-candidates', positionOf, viewFor(call));
    },
    'snapshots.listOperations': async ({ query }, call) => {
      const page = readPage(query, 'snapshot-operations', 2);
      const shouldHideSucceeded = query.exclude_redundant ?? false;
      const rows = await listSnapshotOperations(database, call.organization.id, page, shouldHideSucceeded);
      const { data, ...rest } = toPage(rows, page, 'snapshot-operations', positionOf, (row) => row);
      const items = data.map(async (row) => ({
        ...toOperation(row, await resultOf(row), snapshotViewFor(call)),
        snapshot_name: row.snapshotName,
        destination_kind: 'managed' as const,
        sandbox_name: row.sandboxName,
        sandbox_id: row.sandboxId,
      }));
      return { ...rest, data: await Promise.all(items) };
    },
    'snapshots.getOperation': async ({ params }, call) => {
      const found = await findSnapshotOperation(database, call.organization.id, params.operation_id);
      if (found === undefined) throw new PlatformError('not_found', 'There is no such snapshot operation');
      return toOperation(found, await resultOf(found), snapshotViewFor(call));
    },
    'snapshots.list': async ({ query }, call) => {
      const page = readPage(query, 'snapshots', 2);
      const rows = await listSnapshots(database, call.organization.id, page);
      return toPage(rows, page, 'snapshots', positionOf, snapshotViewFor(call));
    },
    'snapshots.getByName': async ({ params }, call) =>
      snapshotViewFor(call)(await requireSnapshot(database, call.organization.id, { name: params.name })),
    'snapshots.get': async ({ params }, call) =>
      snapshotViewFor(call)(
        await requireSnapshot(database, call.organization.id, { id: params.snapshot_id }),
      ),
  };
}

async function remove(
  parts: SnapshotParts,
  call: RestCall,
  by: { readonly id: string } | { readonly name: string },
): Promise<{ message: string }> {
  const message = 'Snapshot scheduled for deletion';
  await call.commit(
    async ({ db, record }) => {
      const { id, name } = await requireSnapshot(db, call.organization.id, by);
      await removeSnapshot(db, id);
      await record({ type: 'snapshot_deleted', category: 'snapshot', payload: { snapshot_id: id, name } });
    },
    () => ({ message }),
  );
  parts.snapshotWorker.wake();
  return { message };
}

export async function requireSnapshot(
  db: Database,
  organizationId: string,
  by: { readonly id: string } | { readonly name: string },
): Promise<SnapshotRecord> {
  const found = await findSnapshot(db, organizationId, by);
  if (found !== undefined) return found;
  const name = 'id' in by ? by.id : by.name;
  throw new PlatformError('snapshot_not_found', `Snapshot '${name}' not found`, {
    details: { snapshot: name },
  });
}

async function requireEligible(db: Database, organizationId: string, id: string): Promise<SandboxRecord> {
  const sandbox = await findOwnSandbox(db, organizationId, { id });
  if (sandbox === undefined) {
    throw new PlatformError('sandbox_not_found', `Sandbox '${id}' not found`, { details: { sandbox: id } });
  }
  if (sandbox.observed === 'running') return sandbox;
  if (sandbox.isEphemeral) {
    throw ineligible(`Sandbox '${sandbox.name}' is ephemeral and ${sandbox.observed}; its disk goes with it`);
  }
  if (sandbox.observed === 'stopped' || sandbox.observed === 'failed') return sandbox;
  if (sandbox.observed === 'temporarily_unavailable') {
    const message = `Sandbox '${sandbox.name}' is temporarily unavailable; try again when it runs`;
    throw new PlatformError('orchestrator_unreachable', message, { details: { sandbox: sandbox.id } });
  }
  throw ineligible(`Sandbox '${sandbox.name}' is ${sandbox.observed}; wait until it runs, or start it`);
}

function ineligible(message: string): PlatformError {
  return new PlatformError('snapshot_ineligible', message);
}

function nameTaken(name: string): PlatformError {
  const message = `Snapshot '${name}' exists already; choose another name, or replace it with force`;
  return new PlatformError('name_already_exists', message, { details: { field: 'name' } });
}

function positionOf({ createdAt, id }: { readonly createdAt: string; readonly id: string }) {
  return [createdAt, id];
}

function toOperation(
  record: SnapshotOperationRecord,
  result: SnapshotRecord | null,
  show: (record: SnapshotRecord) => Snapshot,
) {
  return {
    id: record.id,
    kind: 'disk' as const,
    status: record.status,
    created_at: record.createdAt,
    updated_at: record.updatedAt,
    completed_at: record.completedAt,
    error: record.error,
    result: result === null ? null : show(result),
  };
}
