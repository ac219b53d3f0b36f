import type { Interpreter } from './interpreter.ts';

/** The pause before a second interruption, in case user code has caught the first one. */
const REPEAT_MS = 500;
/** On a busy machine it may take seconds until code reacts, and killing loses the state. */
const KILL_MS = 5000;

/**
 * Ends code when its time is over or its caller is gone: first with an interruption as Ctrl-C does, then by killing the interpreter.
 * Does nothing before the code begins, while the interpreter may be running another unit.
 */
export class Interruption {
  readonly #interpreter: Interpreter;
  readonly #signal: AbortSignal;
  readonly #killMs: number;
  readonly #allowedMs: number | null;
  #hasBegun = false;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #abort = () => this.#interrupt();
  /** The limit, once the time ran out. */
  timeoutMs: number | null = null;
  hasKilled = false;

  constructor(
    interpreter: Interpreter,
    {
      timeoutMs,
      killMs = KILL_MS,
    }: { readonly timeoutMs: number | null; readonly killMs?: number | undefined },
    signal: AbortSignal,
  ) {
    this.#interpreter = interpreter;
    this.#signal = signal;
    this.#killMs = killMs;
    this.#allowedMs = timeoutMs;
    signal.addEventListener('abort', this.#abort, { once: true });
  }

  /** The code begins to run. */
  begin(): void {
    this.#hasBegun = true;
    const allowedMs = this.#allowedMs;
    if (this.#signal.aborted) this.#interrupt();
    if (allowedMs === null) return;
    this.#after(allowedMs, () => {
      this.timeoutMs = allowedMs;
      this.#interrupt();
    });
  }

  stop(): void {
    this.#signal.removeEventListener('abort', this.#abort);
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #interrupt(): void {
    if (!this.#hasBegun) return;
    void this.#interpreter.interrupt();
    this.#after(REPEAT_MS, () => void this.#interpreter.interrupt());
    this.#after(this.#killMs, () => {
      this.hasKilled = true;
      void this.#interpreter.kill();
    });
  }

  #after(milliseconds: number, act: () => void): void {
    this.#timers.push(setTimeout(act, milliseconds));
  }
}
