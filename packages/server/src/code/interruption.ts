import type { Interpreter } from './interpreter.ts';

/** When the first interruption has no effect: user code may have caught it. */
const REPEAT_MS = 500;
/** On a busy machine it may take seconds until code gets to react, and what is killed loses its state. */
const KILL_MS = 5000;

/** Ends the code that an interpreter runs when its time is over or its caller gone: first as Ctrl-C does, then by force. */
export class Interruption {
  readonly #interpreter: Interpreter;
  readonly #signal: AbortSignal;
  readonly #killMs: number;
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #abort = () => this.#begin();
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
    signal.addEventListener('abort', this.#abort, { once: true });
    if (signal.aborted) this.#begin();
    if (timeoutMs === null) return;
    this.#after(timeoutMs, () => {
      this.timeoutMs = timeoutMs;
      this.#begin();
    });
  }

  stop(): void {
    this.#signal.removeEventListener('abort', this.#abort);
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #begin(): void {
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
