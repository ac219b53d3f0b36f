import { PlatformError, type ChannelClient } from '@svc/contract';
import { explainBreak } from './explain-break.ts';

const OPEN_TIMEOUT_MS = 10_000;

type OpenChannel = (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;

/** One open channel per sandbox, for calls that read their answers at once. A channel that ended is opened again. */
export class ChannelPool {
  readonly #open: OpenChannel;
  readonly #channels = new Map<string, Promise<ChannelClient>>();

  constructor(open: OpenChannel) {
    this.#open = open;
  }

  /**
   * Callers share the channel, so none of them closes it, and an aborted caller does not abort the opening for the others.
   * @throws PlatformError `unavailable` when the sandbox does not answer, or the orchestrator's error
   */
  async get(sandboxId: string): Promise<ChannelClient> {
    const known = this.#channels.get(sandboxId);
    if (known !== undefined) return await known;
    const opening = this.#open(sandboxId, AbortSignal.timeout(OPEN_TIMEOUT_MS)).catch(explain);
    this.#channels.set(sandboxId, opening);
    const drop = () => {
      if (this.#channels.get(sandboxId) === opening) this.#channels.delete(sandboxId);
    };
    opening.then((channel) => channel.closed.then(drop), drop);
    return await opening;
  }

  /** Closes the channel, and with it ends every process that was started over it. */
  forget(sandboxId: string): void {
    const opening = this.#channels.get(sandboxId);
    this.#channels.delete(sandboxId);
    // A failure to open was reported to the caller who asked for it.
    opening?.then((channel) => channel.close()).catch(() => undefined);
  }

  /** Why the channel of a call broke. @returns undefined when the sandbox runs on, or the reason is unknown */
  async explainBreak(sandboxId: string): Promise<unknown> {
    this.forget(sandboxId);
    return await explainBreak((signal) => this.#open(sandboxId, signal));
  }

  close(): void {
    for (const sandboxId of this.#channels.keys()) this.forget(sandboxId);
  }
}

/** Passes errors of the orchestrator on; other errors mean that the sandbox does not answer. */
function explain(error: unknown): never {
  if (PlatformError.is(error)) throw error;
  throw new PlatformError('unavailable', 'the sandbox does not answer on its channel; stop and start it', {
    cause: error,
  });
}
