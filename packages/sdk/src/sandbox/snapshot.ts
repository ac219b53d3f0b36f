import { isErrorCode } from '@svc/contract/errors';
import type { Snapshot } from '@svc/contract/rest';
import { withBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';

const POLL_MS = 200;

export interface SnapshotOptions extends CallOptions {
  /** Replaces a snapshot of this name. */
  readonly force?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Waits until it is made. @throws SvcError `snapshot_ineligible` when the sandbox runs, `name_already_exists`, … */
export async function makeSnapshot(
  client: Client,
  sandboxId: string,
  name: string,
  options: SnapshotOptions,
): Promise<Snapshot> {
  const body = {
    kind: 'disk',
    sandbox_id: sandboxId,
    name,
    force: options.force ?? false,
    labels: { ...options.labels },
  } as const;
  return await withBudget(options, async (budget) => {
    const call = { signal: budget.signal };
    let operation = await client.call('snapshots.create', { body }, call);
    while (operation.status === 'queued' || operation.status === 'in_progress') {
      await budget.pause(POLL_MS);
      const input = { params: { operation_id: operation.id } };
      operation = await client.call('snapshots.getOperation', input, call);
    }
    if (operation.result !== null) return operation.result;
    const { code, message } = operation.error ?? { code: 'internal', message: `Snapshot ${name} failed` };
    throw new SvcError(isErrorCode(code) ? code : 'internal', message);
  });
}
