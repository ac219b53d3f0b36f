import { EventEmitter, on } from 'node:events';
import type { NetworkDenial } from '@svc/contract/orchestrator';

/** Denied attempts of fake sandboxes. */
export class FakeDenials {
  readonly #events = new EventEmitter<{ denial: [NetworkDenial] }>();

  #reported = 0;

  get listeners(): number {
    return this.#events.listenerCount('denial');
  }

  /** All with the same time, so that counters by minute count them together. */
  report(denial: Omit<NetworkDenial, 'id' | 'time'>): void {
    this.#reported += 1;
    this.#events.emit('denial', { ...denial, id: String(this.#reported), time: '2026-01-01T00:00:00.000Z' });
  }

  async *read(signal: AbortSignal): AsyncGenerator<NetworkDenial> {
    for await (const [denial] of on(this.#events, 'denial', { signal })) yield denial as NetworkDenial;
  }
}
