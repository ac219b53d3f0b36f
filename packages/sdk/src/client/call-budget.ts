import { SvcError } from '../svc-error.ts';
import { requireKnownOptions, type OptionNames } from './known-options.ts';
import { toSvcError } from './to-svc-error.ts';

/** The options of every call. */
export interface CallOptions {
  /** Ends the call at once, which then throws `aborted`. */
  readonly signal?: AbortSignal;
  /** How long the call may take in all, retries included; it then throws `timeout`. */
  readonly timeoutMs?: number;
}

export const CALL_OPTIONS: OptionNames<CallOptions> = { signal: true, timeoutMs: true };

/** Extracts the call options from larger options. @throws SvcError `invalid_request` for an unknown one */
export function callOptionsOf<Options extends CallOptions>(
  options: Options,
  own: OptionNames<Omit<Options, keyof CallOptions | 'client'>>,
): CallOptions {
  requireKnownOptions(options, { ...own, ...CALL_OPTIONS, client: true });
  return pickCallOptions(options);
}

export function pickCallOptions({ signal, timeoutMs }: CallOptions): CallOptions {
  return {
    ...(signal === undefined ? {} : { signal }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

/**
 * Does work within a time limit; `timeoutMs` undefined: no limit.
 * @throws SvcError for every failure
 */
export async function withBudget<T>(
  options: CallOptions,
  work: (budget: CallBudget) => Promise<T>,
): Promise<T> {
  const budget = new CallBudget(options);
  try {
    return await work(budget);
  } catch (error) {
    throw budget.explain(error);
  } finally {
    budget.end();
  }
}

/** Like `withBudget`, for an iteration. */
export async function* withBudgetEach<T>(
  options: CallOptions,
  work: (budget: CallBudget) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const budget = new CallBudget(options);
  try {
    yield* work(budget);
  } catch (error) {
    throw budget.explain(error);
  } finally {
    budget.end();
  }
}

/** The time limit of a call. Its signal aborts with a SvcError that says why. The code that creates a budget ends it. */
export class CallBudget {
  readonly #controller = new AbortController();
  readonly #deadline: number;
  readonly #caller: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @throws SvcError `invalid_request` for an option that is not known */
  constructor(options: CallOptions) {
    requireKnownOptions(options, CALL_OPTIONS);
    const { timeoutMs, signal: caller } = options;
    this.#deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
    this.#caller = caller;
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.#expire(timeoutMs), timeoutMs);
    if (caller?.aborted === true) this.#abort();
    else caller?.addEventListener('abort', this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get remainingMs(): number {
    return Math.max(0, this.#deadline - performance.now());
  }

  /** Removes the time limit for the rest of the work; the caller's signal still ends it. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** @throws SvcError `timeout` or `aborted` */
  check(): void {
    this.signal.throwIfAborted();
  }

  async pause(milliseconds: number): Promise<void> {
    this.check();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = (): void => reject(this.signal.reason as SvcError);
    const timer = setTimeout(resolve, milliseconds);
    this.signal.addEventListener('abort', stop);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.signal.removeEventListener('abort', stop);
    }
  }

  /** The reason that ended the call, or else the given error. */
  explain(error: unknown): SvcError {
    return this.signal.aborted ? (this.signal.reason as SvcError) : toSvcError(error);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => {
    const cause: unknown = this.#caller?.reason;
    this.#controller.abort(new SvcError('aborted', 'The call was aborted by its caller', { cause }));
  };

  #expire(timeoutMs: number): void {
    const message = `The call took longer than the ${timeoutMs} ms that it was given`;
    this.#controller.abort(new SvcError('timeout', message, { details: { timeout_ms: timeoutMs } }));
  }
}
