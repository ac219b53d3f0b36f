import { EventEmitter, on } from 'node:events';
import type { EngineEvent } from '../client/engine-api.ts';

/** Enough for a reader that was away for a moment; one that was away longer lists the sandboxes instead. */
const KEPT_EVENTS = 10_000;

/**
 * What happened, in order, in memory. Sequences begin at the start time in microseconds, so they keep growing over a
 * restart without being stored; `engine_started` tells a reader that it may have missed something.
 */
export class EventLog {
  readonly #kept: EngineEvent[] = [];
  readonly #added = new EventEmitter<{ event: [EngineEvent] }>().setMaxListeners(0);
  #sequence = Date.now() * 1000;

  add(type: EngineEvent['type'], sandboxId: string | null, reason: string | null = null): void {
    this.#sequence += 1;
    const event = { sequence: this.#sequence, time: new Date().toISOString(), type, sandboxId, reason };
    this.#kept.push(event);
    if (this.#kept.length > KEPT_EVENTS) this.#kept.shift();
    this.#added.emit('event', event);
  }

  /** Kept events after `after` (none when absent), then new ones until the signal fires. */
  async *read(after: number | undefined, signal: AbortSignal): AsyncGenerator<EngineEvent> {
    // Listening begins before the kept events are read, so none falls between.
    const coming = on(this.#added, 'event', { signal });
    const from = after ?? this.#sequence;
    let last = from;
    try {
      for (const event of this.#kept.filter((kept) => kept.sequence > from)) {
        last = event.sequence;
        yield event;
      }
      for await (const [event] of coming as AsyncIterable<[EngineEvent]>) {
        if (event.sequence > last) yield event;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await coming.return?.();
    }
  }
}
