import { abortable } from '@svc/contract/async';
import { withBudget, type CallBudget } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';
import type { RestCallInput } from '../client/rest-call.ts';
import { withRetries } from '../client/with-retries.ts';
import { SvcError } from '../svc-error.ts';
import { CodeConnection, type RunName } from './code-connection.ts';

type Body = NonNullable<RestCallInput<'code.stream'>['body']>;

/** Receives the events of a run. It returns the result with the last one. */
export type RunHandler<T> = (event: string, data: unknown) => T | undefined;

/** Longer code is sent as a request: escaped, it could exceed the size of message that servers accept. */
const MAX_CODE_LENGTH = 512 * 1024;
/** Time limit for the connection: a proxy may swallow it and let requests through, which get the rest of the time. */
const OPEN_MS = 10_000;

/**
 * Runs code of one sandbox, over a connection that is held open: a request of its own costs more than most code. It is opened at the
 * first run, and again at the first one after it broke; while no code runs, it does not keep the program running. Where there is none to
 * be had, with servers before it and through some proxies, each run is a request.
 */
export class CodeRuns {
  readonly #client: Client;
  readonly #sandboxId: string;
  readonly #openMs: number;
  #opening: Promise<CodeConnection> | undefined;
  /** The server does not know such connections. */
  #isUnknown = false;

  constructor(client: Client, sandboxId: string, { openMs = OPEN_MS }: { readonly openMs?: number } = {}) {
    this.#client = client;
    this.#sandboxId = sandboxId;
    this.#openMs = openMs;
  }

  /** @throws SvcError, or what `onEvent` throws */
  async run<T>(body: Body, onEvent: RunHandler<T>, signal: AbortSignal | undefined): Promise<T> {
    const options = signal === undefined ? {} : { signal };
    const outcome = await withBudget({ timeoutMs: this.#client.timeoutMs, ...options }, (budget) =>
      this.#runOnConnection(body, onEvent, budget),
    );
    if (outcome === undefined) return await this.#request(body, onEvent, options);
    return outcome.result();
  }

  /** Ends what runs. */
  close(): void {
    this.#leave((connection) => connection.close());
  }

  /** Closes it when the current runs have ended. */
  closeWhenIdle(): void {
    this.#leave((connection) => connection.closeWhenIdle());
  }

  #leave(close: (connection: CodeConnection) => void): void {
    const opening = this.#opening;
    this.#opening = undefined;
    opening?.then(close, () => undefined);
  }

  /** Undefined: there is no connection, and nothing was sent. What a result throws is not repeated. */
  async #runOnConnection<T>(
    body: Body,
    onEvent: RunHandler<T>,
    budget: CallBudget,
  ): Promise<{ readonly result: () => T } | undefined> {
    if (this.#isUnknown || !this.#client.isDirect || body.code.length > MAX_CODE_LENGTH) return undefined;
    let again: RunName | undefined;
    return await withRetries(budget, this.#client.maxRetries, async () => {
      const connection = await this.#take(budget).catch((error: unknown) => {
        // Code that may have been begun is asked for again by its name or not at all.
        if (again === undefined && !budget.signal.aborted) return undefined;
        throw error;
      });
      if (connection === undefined) return undefined;
      const run = new Run(onEvent, budget);
      let name: RunName | undefined;
      const abort = () => run.onLost(budget.signal.reason as SvcError);
      budget.signal.addEventListener('abort', abort);
      try {
        name = connection.run(body, again, run);
        return await run.outcome;
      } catch (error) {
        if (SvcError.is(error, 'connection_failed')) again ??= name;
        // The owner closed it, so it is not opened again.
        if (connection.isClosed) return failed(error);
        throw error;
      } finally {
        budget.signal.removeEventListener('abort', abort);
        // Has no effect on a run that is over.
        if (name !== undefined) connection.cancel(name);
      }
    });
  }

  async #request<T>(
    body: Body,
    onEvent: RunHandler<T>,
    options: { readonly signal?: AbortSignal },
  ): Promise<T> {
    const input = { params: { sandbox_id: this.#sandboxId }, body };
    const events = await this.#client.call('code.stream', input, options);
    const iterator = events[Symbol.asyncIterator]();
    try {
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
        const { event, data } = next.value;
        const result = onEvent(event, data);
        if (result === undefined) continue;
        // The end of the answer comes behind its last event; only a connection whose answer was read to the end is used again.
        iterator.next().catch(() => undefined);
        return result;
      }
    } catch (error) {
      await iterator.return?.();
      throw error;
    }
    throw interrupted();
  }

  async #take(budget: CallBudget): Promise<CodeConnection> {
    if (this.#opening === undefined) {
      const opening = this.#open();
      const forget = () => {
        if (this.#opening === opening) this.#opening = undefined;
      };
      this.#opening = opening;
      opening.then(({ ended }) => ended).then(forget, forget);
    }
    return await abortable(this.#opening, budget.signal);
  }

  /** Several calls may wait for the same connection, so no caller's signal ends its opening, only its own time limit. */
  async #open(): Promise<CodeConnection> {
    try {
      const timeoutMs = Math.min(this.#openMs, this.#client.timeoutMs);
      return await withBudget({ timeoutMs }, async (budget) => {
        const transport = await this.#client.dialCode(this.#sandboxId, budget);
        return await CodeConnection.open(transport, budget.signal);
      });
    } catch (error) {
      this.#isUnknown = SvcError.is(error, 'not_found');
      throw error;
    }
  }
}

/** A run whose events the caller waits for. */
class Run<T> {
  readonly #onEvent: RunHandler<T>;
  readonly #budget: CallBudget;
  readonly #outcome = Promise.withResolvers<{ readonly result: () => T }>();
  #hasBegun = false;

  constructor(onEvent: RunHandler<T>, budget: CallBudget) {
    this.#onEvent = onEvent;
    this.#budget = budget;
  }

  get outcome(): Promise<{ readonly result: () => T }> {
    return this.#outcome.promise;
  }

  onEvent(event: string, data: unknown): void {
    // It may take as long as it likes from here on.
    this.#budget.stopClock();
    if (event !== 'begun') this.#hasBegun = true;
    try {
      const result = this.#onEvent(event, data);
      if (result !== undefined) this.#outcome.resolve({ result: () => result });
    } catch (error) {
      this.#outcome.resolve(failed(error));
    }
  }

  onLost(error: SvcError): void {
    if (this.#hasBegun && error.code === 'connection_failed')
      this.#outcome.resolve(failed(interrupted(error)));
    else this.#outcome.reject(error);
  }
}

/** An outcome that is not asked for again. */
function failed(error: unknown): { readonly result: () => never } {
  return {
    result: () => {
      throw error;
    },
  };
}

function interrupted(cause?: unknown): SvcError {
  const message = 'The connection broke while the code ran; it was interrupted';
  return new SvcError('connection_failed', message, { cause });
}
