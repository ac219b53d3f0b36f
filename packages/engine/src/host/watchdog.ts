import { pause } from '@svc/contract/node-pause';
import type { ProcessState } from './process-state.ts';

const TICK_MS = 1000;
/** A process that was stopped by a signal may have been stopped for a moment. */
const STOPPED_TICKS = 2;
/** It does not answer and uses no CPU: it is stuck, on a disk for one. */
const QUIET_TICKS = 10;
/** It does not answer but is at work: on a machine that is full that may take long. */
const BUSY_TICKS = 60;

type Looked = Pick<ProcessState, 'state' | 'cpuTicks'> | undefined;

export interface Watched {
  /** Resolves when the process answers. Rejects when nobody is there: then it has ended, which others notice. */
  ask(signal: AbortSignal): Promise<unknown>;
  /** What the kernel says of it; undefined when that is not known. */
  look(): Looked | Promise<Looked>;
  /** Called once each time. */
  onFrozen(reason: string): void;
  /** It answers again, or has ended. */
  onBack?(): void;
}

/**
 * Notices that a process hangs: stopped by a signal for two seconds, or without an answer for ten. Time is counted in ticks of our own,
 * so that a machine that stood still as a whole frightens nobody; and a process that uses the CPU gets a minute.
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

  /** `busyTicks`: how long one that is at work may take. */
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
