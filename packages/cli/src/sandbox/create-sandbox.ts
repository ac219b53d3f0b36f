import { Sandbox, SvcError, type Client, type CreateSandboxOptions } from '@svc/sdk';
import { Interrupted } from '../terminal/interrupted.ts';
import { StartWatch } from './watch-start.ts';

/** Time limit for one answer; most sandboxes run by then. An interrupt may have to wait for one such answer. */
const HOLD_MS = 3000;

type Asked = CreateSandboxOptions & { readonly client: Client; readonly name: string };

/**
 * Creates and starts a sandbox with a progress line and without a time limit for its image. An interrupt removes the sandbox.
 * @throws InterruptedError, SvcError
 */
export async function createSandbox(
  client: Client,
  options: CreateSandboxOptions & { readonly name: string },
): Promise<Sandbox> {
  using interruption = new Interrupted();
  using watch = new StartWatch(client, options.name, options.image ?? 'a snapshot');
  const { signal } = interruption;
  const asked: Asked = { ...options, client, idempotencyKey: crypto.randomUUID(), timeoutMs: HOLD_MS };
  let sandbox: Sandbox | undefined;
  try {
    sandbox = await untilAnswered(asked, signal);
    await untilRunning(sandbox, watch, signal);
    return sandbox;
  } catch (error) {
    if (options.isEphemeral !== true && !signal.aborted) throw error;
    const id = sandbox?.id ?? idIn(error) ?? (signal.aborted ? await idOf(asked) : undefined);
    if (id !== undefined) await removeQuietly(client, id);
    throw interruption.reason ?? (id === undefined ? error : withoutTrace(error));
  }
}

/**
 * Creates a sandbox that runs or starts. A server that did not answer in time may still be creating it, so the call is repeated
 * under the same idempotency key, and the sandbox is created once.
 */
async function untilAnswered(asked: Asked, signal?: AbortSignal): Promise<Sandbox> {
  const call = signal === undefined ? {} : { signal };
  for (;;) {
    try {
      return await Sandbox.create({ ...asked, ...call });
    } catch (error) {
      if (!SvcError.is(error, 'timeout')) throw error;
      const id = idIn(error);
      if (id !== undefined) return await Sandbox.connect(id, { client: asked.client, ...call });
    }
  }
}

async function untilRunning(sandbox: Sandbox, watch: StartWatch, signal: AbortSignal): Promise<void> {
  while (sandbox.status !== 'running') {
    const { status_reason: reason } = sandbox.info;
    if (reason !== null) watch.note(reason.replaceAll('_', ' '));
    try {
      await sandbox.waitForRunning({ signal, timeoutMs: HOLD_MS });
    } catch (error) {
      if (!SvcError.is(error, 'timeout')) throw error;
      await sandbox.refresh({ signal });
    }
  }
}

/**
 * Finds the sandbox that an interrupted call created, if any, by repeating the call. A lookup by name could find a foreign sandbox,
 * or miss one that is still being created.
 */
async function idOf(asked: Asked): Promise<string | undefined> {
  try {
    return (await untilAnswered(asked)).id;
  } catch (error) {
    return idIn(error);
  }
}

/** Undefined when none was created, or when that is unknown. */
function idIn(error: unknown): string | undefined {
  const isOfMade = SvcError.is(error, 'start_failed') || SvcError.is(error, 'timeout');
  const id = isOfMade ? error.details?.['sandbox_id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** Marks the sandbox as removed, so that the printed advice does not point to its logs. */
function withoutTrace(error: unknown): unknown {
  if (!SvcError.is(error)) return error;
  return new SvcError(error.code, error.message, {
    details: { ...error.details, is_removed: true },
    cause: error,
  });
}

/** Errors of the cleanup are dropped, because the caller gets the first error. */
async function removeQuietly(client: Client, sandboxId: string): Promise<void> {
  await client.call('sandboxes.remove', { params: { sandbox_id: sandboxId } }).catch(() => undefined);
}
