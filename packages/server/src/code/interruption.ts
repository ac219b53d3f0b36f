import type { Interpreter } from './interpreter.ts';

/** When the first interruption has no effect: user code may have caught it. */
const REPEAT_MS = 500;
/** On a busy machine it may take seconds until code gets to react, and what is killed loses its state. */
const KILL_MS = 5000;

/**
 * Ends the code that an interpreter runs when its time is over or its caller gone: first as Ctrl-C does, then by force. Until
 * the code begins, others may have the interpreter, and nothing is done to them.
 */
export class Interruption {
  readonly #interpreter: Interpreter;
  readonly #signal: AbortSignal;
  readonly #killMs: number;
  readonly #allowedMs: number | null;
  #hasBegun = false;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #abort = () => this.#interrupt();
  /** Set when time ran out, to what was allowed. */
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
