import { pause } from '@svc/contract/node-pause';
import type { ProcessState } from './process-state.ts';

const TICK_MS = 1000;
/** For a process that was stopped by a signal, perhaps only briefly. */
const STOPPED_TICKS = 2;
/** For a process that neither answers nor uses the CPU: it is stuck, for instance in disk I/O. */
const QUIET_TICKS = 10;
/** For a process that uses the CPU but does not answer: on an overloaded machine that may take long. */
const BUSY_TICKS = 60;

type Looked = Pick<ProcessState, 'state' | 'cpuTicks'> | undefined;

export interface Watched {
  /** Resolves when the process answers. Rejects when it cannot be reached: then it has ended, which is detected elsewhere. */
  ask(signal: AbortSignal): Promise<unknown>;
  /** State from the kernel; undefined when it is unknown. */
  look(): Looked | Promise<Looked>;
  /** Called once per hang. */
  onFrozen(reason: string): void;
  /** It answers again, or has ended. */
  onBack?(): void;
}

/**
 * Detects that a process hangs: stopped by a signal for two seconds, or without an answer for ten. Time is counted in ticks of our own
 * timer, so that a pause of the whole machine does not count; a process that uses the CPU gets a minute.
 */
export class Watchdog {
  readonly #watched: Watched;
  readonly #closed = new AbortController();
  #isAsking = false;
  #isFrozen = false;
  #stoppedTicks = 0;
  #quietTicks = 0;
  #unansweredTicks = 0;
  #cpuTicks = 0;
  readonly #busyTicks: number;

  /** `busyTicks`: limit for a process that uses the CPU. */
  constructor(watched: Watched, tickMs: number = TICK_MS, busyTicks: number = BUSY_TICKS) {
    this.#watched = watched;
    this.#busyTicks = busyTicks;
    void this.#watch(tickMs);
  }

  close(): void {
    this.#closed.abort();
  }

  async #watch(tickMs: number): Promise<void> {
    const { signal } = this.#closed;
    for (;;) {
      this.#ask();
      await pause(tickMs, signal, { keepsProcess: false });
      if (signal.aborted) return;
      const state = await this.#watched.look();
      if (!signal.aborted) this.#count(state);
    }
  }

  #count(state: Looked): void {
    const isStopped = state?.state === 'T';
    const isBusy = state !== undefined && state.cpuTicks !== this.#cpuTicks;
    this.#cpuTicks = state?.cpuTicks ?? 0;
    this.#stoppedTicks = isStopped ? this.#stoppedTicks + 1 : 0;
    this.#unansweredTicks = this.#isAsking ? this.#unansweredTicks + 1 : 0;
    this.#quietTicks = this.#isAsking && !isBusy ? this.#quietTicks + 1 : 0;
    const reason = this.#reason();
    if (reason === undefined || this.#isFrozen) return;
    this.#isFrozen = true;
    this.#watched.onFrozen(reason);
  }

  #reason(): string | undefined {
    if (this.#stoppedTicks >= STOPPED_TICKS) return 'it was stopped by a signal';
    if (this.#quietTicks >= QUIET_TICKS || this.#unansweredTicks >= this.#busyTicks)
      return 'it does not answer';
    return undefined;
  }

  #ask(): void {
    if (this.#isAsking || this.#closed.signal.aborted) return;
    this.#isAsking = true;
    const over = () => {
      this.#isAsking = false;
      if (!this.#isFrozen || this.#closed.signal.aborted) return;
      this.#isFrozen = false;
      this.#watched.onBack?.();
    };
    this.#watched.ask(this.#closed.signal).then(over, over);
  }
}
