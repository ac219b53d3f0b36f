import { isErrorCode } from '@svc/contract/errors';
import type { Snapshot } from '@svc/contract/rest';
import { callOptionsOf, withBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { SvcError } from '../svc-error.ts';

/** Polling intervals: most snapshots are made at once, slow ones are polled less often. */
const FIRST_POLL_MS = 10;
const MOST_POLL_MS = 200;

export interface SnapshotOptions extends CallOptions {
  /** Replaces a snapshot of this name. */
  readonly force?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Waits until it is made. @throws SvcError `snapshot_ineligible` before its first start, `name_already_exists`, … */
export async function makeSnapshot(
  client: Client,
  sandboxId: string,
  name: string,
  options: SnapshotOptions,
): Promise<Snapshot> {
  const limits = callOptionsOf(options, { force: true, labels: true });
  const body = {
    kind: 'disk',
    sandbox_id: sandboxId,
    name,
    force: options.force ?? false,
    labels: { ...options.labels },
  } as const;
  return await withBudget(limits, async (budget) => {
    const call = { signal: budget.signal };
    let operation = await client.call('snapshots.create', { body }, call);
    for (let pauseMs = FIRST_POLL_MS; isUnderWay(operation); pauseMs = Math.min(2 * pauseMs, MOST_POLL_MS)) {
      await budget.pause(pauseMs);
      const input = { params: { operation_id: operation.id } };
      operation = await client.call('snapshots.getOperation', input, call);
    }
    if (operation.result !== null) return operation.result;
    const { code, message } = operation.error ?? { code: 'internal', message: `Snapshot ${name} failed` };
    throw new SvcError(isErrorCode(code) ? code : 'internal', message);
  });
}

function isUnderWay({ status }: RestCallOutput<'snapshots.getOperation'>): boolean {
  return status === 'queued' || status === 'in_progress';
}
