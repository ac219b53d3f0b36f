import { setTimeout as delay } from 'node:timers/promises';
import { Sandbox, SvcError, type Client, type CreateOptions } from '@svc/sdk';
import { Interrupted } from '../terminal/interrupted.ts';
import { StartWatch } from './watch-start.ts';

/** How long the server holds its answer; most images are there by then. */
const HOLD_MS = 20_000;
const POLL_MS = 500;

/**
 * Makes and starts a sandbox while a line tells how it goes, however long its image takes. An interrupt takes it back.
 * @throws InterruptedError, SvcError
 */
export async function createSandbox(
  client: Client,
  options: CreateOptions & { readonly name: string },
): Promise<Sandbox> {
  using interruption = new Interrupted();
  using watch = new StartWatch(client, options.name, options.image ?? 'a snapshot');
  const { signal } = interruption;
  try {
    return await Sandbox.create({ ...options, client, signal, timeoutMs: HOLD_MS });
  } catch (error) {
    if (SvcError.is(error, 'timeout')) return await untilRunning(client, options.name, watch, signal);
    const isOurs = !SvcError.is(error, 'name_already_exists');
    const isRemoved = isOurs && (options.isEphemeral === true || signal.aborted);
    if (isRemoved) await removeQuietly(client, options.name);
    throw interruption.reason ?? (isRemoved ? withoutTrace(error) : error);
  }
}

async function untilRunning(
  client: Client,
  name: string,
  watch: StartWatch,
  signal: AbortSignal,
): Promise<Sandbox> {
  const sandbox = await Sandbox.connect(name, { client, signal });
  while (sandbox.status === 'starting') {
    const { status_reason: reason } = sandbox.info;
    if (reason !== null) watch.note(reason.replaceAll('_', ' '));
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    await sandbox.refresh({ signal });
  }
  // Says what is wrong when it does not run.
  if (sandbox.status !== 'running') await sandbox.start({ signal });
  return sandbox;
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
async function removeQuietly(client: Client, name: string): Promise<void> {
  await client.call('sandboxes.removeByName', { params: { name } }).catch(() => undefined);
}
