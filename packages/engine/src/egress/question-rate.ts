import { setTimeout as delay } from 'node:timers/promises';

/** As the packet filter counts datagrams. */
const INTERVAL_MS = 1000 / 200;
const BURST = 400;
const MAX_CLIENTS = 4096;

/**
 * Lets each client ask 200 questions a second over TCP, after 400 at once: many questions fit into one packet, so the packet filter
 * cannot count them. Whoever asks more waits, and others do not notice.
 */
export class QuestionRate {
  /** When each client has used up what it was given so far. */
  readonly #spentUntil = new Map<string, number>();

  /** Returns when the client may ask its next question. */
  async turn(client: string): Promise<void> {
    const now = performance.now();
    const spent = Math.max(this.#spentUntil.get(client) ?? 0, now - BURST * INTERVAL_MS) + INTERVAL_MS;
    this.#spentUntil.set(client, spent);
    if (this.#spentUntil.size > MAX_CLIENTS) this.#forget(now);
    if (spent > now) await delay(spent - now, undefined, { ref: false });
  }

  /** A client that has its whole burst back is like one that was never seen. */
  #forget(now: number): void {
    for (const [client, spent] of this.#spentUntil)
      if (spent < now - BURST * INTERVAL_MS) this.#spentUntil.delete(client);
  }
}
