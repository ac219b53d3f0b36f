import { Sandbox, SvcError, type Client, type CreateSandboxOptions } from '@svc/sdk';
import { Interrupted } from '../terminal/interrupted.ts';
import { StartWatch } from './watch-start.ts';

/** How long an answer is waited for; most sandboxes run by then. An interrupt may have to wait for one such answer. */
const HOLD_MS = 3000;

type Asked = CreateSandboxOptions & { readonly client: Client; readonly name: string };

/**
 * Makes and starts a sandbox while a line tells how it goes, however long its image takes. An interrupt takes it back.
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
 * A sandbox that runs or starts. A server that did not answer in time may be at it still, and the sandbox be there a moment
 * later: under the same key it is asked for again, and made once.
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
 * Which sandbox an interrupted call made, if any: the same call says so. One of that name may be somebody else's, and one that is
 * not there yet may come.
 */
async function idOf(asked: Asked): Promise<string | undefined> {
  try {
    return (await untilAnswered(asked)).id;
  } catch (error) {
    return idIn(error);
  }
}

/** Undefined when nothing was made, or nobody knows. */
function idIn(error: unknown): string | undefined {
  const isOfMade = SvcError.is(error, 'start_failed') || SvcError.is(error, 'timeout');
  const id = isOfMade ? error.details?.['sandbox_id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** The sandbox was removed, so the advice that is printed with the error must not send anybody to its logs. */
function withoutTrace(error: unknown): unknown {
  if (!SvcError.is(error)) return error;
  return new SvcError(error.code, error.message, {
    details: { ...error.details, is_removed: true },
    cause: error,
  });
}

/** What failed is what the caller is told; that something is left as well is worth no second error. */
async function removeQuietly(client: Client, sandboxId: string): Promise<void> {
  await client.call('sandboxes.remove', { params: { sandbox_id: sandboxId } }).catch(() => undefined);
}
