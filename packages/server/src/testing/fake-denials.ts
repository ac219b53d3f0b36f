import { EventEmitter, on } from 'node:events';
import type { NetworkDenial } from '../orchestrator/orchestrator.ts';

/** What sandboxes that are none tried and were kept from. */
export class FakeDenials {
  readonly #events = new EventEmitter<{ denial: [NetworkDenial] }>();

  get listeners(): number {
    return this.#events.listenerCount('denial');
  }

  tell(denial: NetworkDenial): void {
    this.#events.emit('denial', denial);
  }

  async *read(signal: AbortSignal): AsyncGenerator<NetworkDenial> {
    for await (const [denial] of on(this.#events, 'denial', { signal })) yield denial as NetworkDenial;
  }
}
