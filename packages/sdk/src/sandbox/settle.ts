import type { Sandbox as SandboxRecord, SandboxStatus } from '@svc/contract/rest';
import { withBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';

const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 1000;
/** How long the server is asked to hold an answer; the call itself may last a little longer. */
const WAIT_SECONDS = 90;
const WAIT_GRACE_MS = 10_000;

const STOPPED: ReadonlySet<SandboxStatus> = new Set(['stopped', 'failed', 'created']);

/** For calls that the server holds until the sandbox runs. */
export function waitForRunning(options: CallOptions): {
  readonly query: { readonly wait_for: 'running'; readonly wait_timeout: number };
  readonly call: CallOptions & { readonly timeoutMs: number };
} {
  const seconds = options.timeoutMs === undefined ? WAIT_SECONDS : Math.ceil(options.timeoutMs / 1000);
  const timeoutMs = options.timeoutMs ?? WAIT_SECONDS * 1000 + WAIT_GRACE_MS;
  return { query: { wait_for: 'running', wait_timeout: seconds }, call: { ...options, timeoutMs } };
}

/** @throws SvcError `start_failed`, or `timeout` while it is still starting */
export function requireRunning(record: SandboxRecord): SandboxRecord {
  const { status, name, id, last_failure_message: reason } = record;
  if (status === 'running') return record;
  const details = { sandbox_id: id, status };
  if (status === 'starting') {
    throw new SvcError('timeout', `Sandbox '${name}' is still starting; ask again later`, { details });
  }
  const why = reason ?? `it is ${status}`;
  throw new SvcError('start_failed', `Sandbox '${name}' did not start: ${why}`, { details });
}

/** Null when it is gone, as ephemeral ones are. @throws SvcError `timeout` */
export async function untilStopped(
  client: Client,
  sandboxId: string,
  options: CallOptions,
): Promise<SandboxRecord | null> {
  return await withBudget({ timeoutMs: client.timeoutMs, ...options }, async (budget) => {
    for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(LONGEST_POLL_MS, pauseMs * 1.5)) {
      try {
        const input = { params: { sandbox_id: sandboxId } };
        const record = await client.call('sandboxes.get', input, { signal: budget.signal });
        if (STOPPED.has(record.status)) return record;
      } catch (error) {
        if (SvcError.is(error, 'sandbox_not_found')) return null;
        throw error;
      }
      await budget.pause(pauseMs);
    }
  });
}
