import type { Sandbox as SandboxRecord, SandboxStatus } from '@svc/contract/rest';
import { withBudget, type CallBudget, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';

const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 1000;
/** Time limit of a start unless given. */
const START_TIMEOUT_MS = 100_000;
/** How long of that the server is asked to hold its answer; the rest is for the transfer of the answer. */
const HELD = 0.9;

const STOPPED: ReadonlySet<SandboxStatus> = new Set(['stopped', 'failed', 'created']);

interface Held {
  readonly query: { readonly wait_for: 'running'; readonly wait_timeout: number };
  readonly call: CallOptions;
}

/** Asks for a start with a call that the server holds, and waits until it runs. @throws SvcError `start_failed`, `timeout` */
export async function untilStarted(
  client: Client,
  options: CallOptions,
  ask: (held: Held) => Promise<SandboxRecord>,
): Promise<SandboxRecord> {
  const timeoutMs = options.timeoutMs ?? START_TIMEOUT_MS;
  return await withBudget({ ...options, timeoutMs }, async (budget) => {
    const query = { wait_for: 'running', wait_timeout: Math.floor((timeoutMs * HELD) / 1000) } as const;
    const record = await ask({ query, call: { signal: budget.signal, timeoutMs } });
    return requireRunning(await untilOver(client, record, budget));
  });
}

/** Waits for a start that was asked for already. @throws SvcError `start_failed`, `timeout` */
export async function untilRunning(
  client: Client,
  sandboxId: string,
  options: CallOptions,
): Promise<SandboxRecord> {
  return await withBudget({ timeoutMs: START_TIMEOUT_MS, ...options }, async (budget) => {
    const { signal } = budget;
    const record = await client.call('sandboxes.get', { params: { sandbox_id: sandboxId } }, { signal });
    return requireRunning(await untilOver(client, record, budget));
  });
}

/** The record after the start is over, or when the time is up. */
async function untilOver(client: Client, asked: SandboxRecord, budget: CallBudget): Promise<SandboxRecord> {
  let record = asked;
  for (let pauseMs = FIRST_POLL_MS; record.status === 'starting'; pauseMs = longer(pauseMs)) {
    if (budget.remainingMs < 2 * pauseMs) return record;
    await budget.pause(pauseMs);
    const found = await findById(client, record.id, budget);
    // An ephemeral sandbox ran, and was removed with its end.
    record = found ?? { ...record, status: 'stopped' };
  }
  return record;
}

/** @throws SvcError `start_failed`, or `timeout` while it is still starting */
function requireRunning(record: SandboxRecord): SandboxRecord {
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
    for (let pauseMs = FIRST_POLL_MS; ; pauseMs = longer(pauseMs)) {
      const record = await findById(client, sandboxId, budget);
      if (record === null || STOPPED.has(record.status)) return record;
      await budget.pause(pauseMs);
    }
  });
}

function longer(pauseMs: number): number {
  return Math.min(LONGEST_POLL_MS, pauseMs * 1.5);
}

async function findById(client: Client, id: string, { signal }: CallBudget): Promise<SandboxRecord | null> {
  try {
    return await client.call('sandboxes.get', { params: { sandbox_id: id } }, { signal });
  } catch (error) {
    if (SvcError.is(error, 'sandbox_not_found')) return null;
    throw error;
  }
}
