import { Notifier } from '@svc/contract/async';
import type { EngineEvent, ReadEvents } from '../client/engine-api.ts';

/** Enough for a reader that was away for a moment; one that was away longer lists the sandboxes instead. */
const KEPT_EVENTS = 10_000;

/**
 * What happened, in order, in memory. Sequences begin at the start time in microseconds, so they keep growing over a
 * restart without being stored; `engine_started` tells a reader that it may have missed something.
 */
export class EventLog {
  readonly #kept: EngineEvent[] = [];
  /** Readers that have read everything. */
  readonly #notifier = new Notifier();
  #sequence = Date.now() * 1000;

  /** Of the newest event. */
  get sequence(): number {
    return this.#sequence;
  }

  add(type: EngineEvent['type'], sandboxId: string | null, reason: string | null = null): void {
    this.#sequence += 1;
    const event = { sequence: this.#sequence, time: new Date().toISOString(), type, sandboxId, reason };
    this.#kept.push(event);
    if (this.#kept.length > KEPT_EVENTS) this.#kept.shift();
    this.#notifier.notify();
  }

  /** Stored events, then new ones until the signal fires. A slow reader misses the oldest. */
  async *read({ after, types }: ReadEvents, signal: AbortSignal): AsyncGenerator<EngineEvent> {
    // A cursor ahead of our sequence is from before the clock of the host was set back: its reader gets all stored events.
    let last = after === undefined ? this.#sequence : after > this.#sequence ? 0 : after;
    while (!signal.aborted) {
      // Looked up each time, not copied: a reader that pauses holds no memory.
      const next = this.#kept[this.#positionAfter(last)];
      if (next === undefined) {
        await this.#notifier.wait(signal);
      } else {
        last = next.sequence;
        if (types === undefined || types.includes(next.type)) yield next;
      }
    }
  }

  /** Sequences have no gaps. */
  #positionAfter(sequence: number): number {
    const oldest = this.#kept[0]?.sequence ?? 0;
    return Math.max(0, sequence + 1 - oldest);
  }
}
