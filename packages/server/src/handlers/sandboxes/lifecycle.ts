import { ChannelError, checkSpec, PlatformError } from '@svc/contract';
import type { RestInput, RestOperations } from '@svc/contract/rest';
import { eventCaller } from '../../dispatch/event-caller.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { ChannelPool } from '../../orchestrator/channel-pool.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import { lifecycleOf } from '../../orchestrator/lifecycle-of.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import { recordSandboxEvent } from '../../sandboxes/sandbox-events.ts';
import type { Database } from '../../store/database.ts';
import { updateSandbox, type SandboxRecord } from '../../store/sandboxes.ts';
import { answer, requireSandbox, requireVersion } from './rest-sandboxes.ts';
import { viewFor } from './sandbox-view.ts';

const TOUCH_TIMEOUT_MS = 10_000;

type Change = RestInput<RestOperations['lifecycle.update']>['body'];

export interface LifecycleParts {
  readonly database: Database;
  readonly health: EngineHealth;
  readonly convergence: Convergence;
  readonly channels: ChannelPool;
}

export function lifecycleHandlers(
  parts: LifecycleParts,
): Pick<RestHandlers, Extract<keyof RestHandlers, `lifecycle.${string}`>> {
  const { database, channels } = parts;
  return {
    'lifecycle.update': async ({ params, body }, call) =>
      await answer(call, await update(parts, call, params.sandbox_id, body)),
    'lifecycle.keepAlive': async ({ params }, call) => {
      const record = await requireSandbox(database, call, { id: params.sandbox_id });
      requireEngine(parts.health, undefined, record.node);
      if (record.observed !== 'running') {
        const message = `Sandbox '${record.name}' is ${record.observed}; start it first`;
        throw new PlatformError('sandbox_not_running', message, { details: { state: record.observed } });
      }
      await touch(channels, record, call.signal);
      return await answer(call, record);
    },
  };
}

/** @throws PlatformError `unavailable` when the sandbox does not answer */
async function touch(channels: ChannelPool, { id, name }: SandboxRecord, caller: AbortSignal): Promise<void> {
  const channel = await channels.get(id);
  const deadline = AbortSignal.timeout(TOUCH_TIMEOUT_MS);
  await channel.touch({ signal: AbortSignal.any([caller, deadline]) }).catch((error: unknown) => {
    if (!deadline.aborted && !(error instanceof ChannelError)) throw error;
    const message = `Sandbox '${name}' did not answer; try again, and look at its state when that does not help`;
    throw new PlatformError('unavailable', message, { cause: error });
  });
}

/** Stores the lifetime and applies it; a failure is retried as soon as the engine is available. */
async function update(
  { health, convergence }: LifecycleParts,
  call: RestCall,
  id: string,
  change: Change,
): Promise<SandboxRecord> {
  requireEngine(health);
  const record = await call.commit(async ({ db }) => {
    const now = await requireSandbox(db, call, { id });
    requireEngine(health, undefined, now.node);
    requireVersion(call, now);
    const lifecycle = { ...now.spec.lifecycle, ...changeOf(now, change) };
    const changed = await updateSandbox(db, now, { spec: checkSpec({ ...now.spec, lifecycle }) });
    if (changed.version !== now.version)
      await recordSandboxEvent(db, 'sandbox_lifecycle_changed', changed, eventCaller(call), {
        ...lifecycleOf(changed.spec),
      });
    return changed;
  }, viewFor(call));
  await convergence.converge(id);
  return record;
}

/** @throws PlatformError naming the invalid field */
function changeOf({ name, observed, startedAt }: SandboxRecord, change: Change) {
  const { ends_in_secs: left = null, ...given } = change;
  if (left === null) return given;
  if (given.max_duration_secs !== undefined) {
    const message = 'ends_in_secs: cannot be given together with max_duration_secs; give one of the two';
    throw new PlatformError('invalid_request', message, { details: { field: 'ends_in_secs' } });
  }
  if (observed !== 'running' || startedAt === null) {
    const message = `Sandbox '${name}' is ${observed}; an end from now on needs one that runs. Give max_duration_secs for its next run`;
    throw new PlatformError('invalid_state_transition', message, { details: { state: observed } });
  }
  const ranSeconds = Math.max(0, Math.floor((Date.now() - Date.parse(startedAt)) / 1000));
  return { ...given, max_duration_secs: ranSeconds + left };
}
