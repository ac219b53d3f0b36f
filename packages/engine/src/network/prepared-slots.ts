import { onAbort } from '@svc/contract/async';
import type { Logger } from 'pino';
import type { Slot } from './network.ts';

export interface PreparedSlotsOptions {
  /** The number of slots to keep ready. */
  readonly target: number;
  readonly make: () => Promise<Slot>;
  readonly remove: (slot: Slot) => Promise<void>;
  readonly logger: Pick<Logger, 'warn'>;
}

interface Waiter {
  readonly give: (slot: Slot) => void;
  readonly fail: (error: unknown) => void;
}

/** Making a slot is mostly kernel time under one lock; more in parallel would only wait for it. */
const MAX_MAKING = 4;
const RETRY_DELAY_MS = 1000;

/** Keeps slots of one kind ready. A caller gets one at once, or else the next that is made. */
export class PreparedSlots {
  readonly #options: PreparedSlotsOptions;
  readonly #ready: Slot[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #making = new Set<Promise<void>>();
  #retry: NodeJS.Timeout | null = null;
  #isOpen = true;

  constructor(options: PreparedSlotsOptions) {
    this.#options = options;
    this.#refill();
  }

  async take(signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    const ready = this.#ready.shift();
    if (ready !== undefined) {
      // In the next turn of the event loop, so that the caller continues first.
      setImmediate(() => this.#refill());
      return ready;
    }
    return new Promise<Slot>((resolve, reject) => {
      const settle = (how: () => void) => {
        this.#waiters.delete(waiter);
        stop();
        how();
      };
      const waiter = {
        give: (slot: Slot) => settle(() => resolve(slot)),
        fail: (error: unknown) => settle(() => reject(error)),
      };
      this.#waiters.add(waiter);
      const stop = onAbort(signal, (reason) => settle(() => reject(reason)));
      this.#refill();
    });
  }

  /** Takes out an unused slot that matches, for the caller to remove; null when none does. Waits for slots that are being made. */
  async withdraw(fits: (slot: Slot) => boolean): Promise<Slot | null> {
    if (!this.#ready.some(fits)) await Promise.all(this.#making);
    const at = this.#ready.findIndex(fits);
    return at < 0 ? null : (this.#ready.splice(at, 1)[0] ?? null);
  }

  /** Stops making slots and removes the unused ones. Never rejects. */
  async close(reason: Error): Promise<void> {
    this.#isOpen = false;
    if (this.#retry !== null) clearTimeout(this.#retry);
    for (const waiter of this.#waiters) waiter.fail(reason);
    await Promise.all(this.#making);
    await Promise.all(this.#ready.splice(0).map((slot) => this.#discard(slot)));
  }

  #refill(): void {
    // Without waiters a failure is followed by a pause.
    if (!this.#isOpen || (this.#retry !== null && this.#waiters.size === 0)) return;
    const wanted = this.#waiters.size + Math.max(0, this.#options.target - this.#ready.length);
    while (this.#making.size < Math.min(wanted, MAX_MAKING)) {
      const making = this.#makeOne().finally(() => {
        this.#making.delete(making);
        this.#refill();
      });
      this.#making.add(making);
    }
  }

  async #makeOne(): Promise<void> {
    try {
      const slot = await this.#options.make();
      const [waiter] = this.#waiters;
      if (waiter === undefined) this.#ready.push(slot);
      else waiter.give(slot);
    } catch (error) {
      const [waiter] = this.#waiters;
      if (waiter !== undefined) return waiter.fail(error);
      this.#options.logger.warn({ error }, 'A network slot could not be prepared; trying again');
      this.#retry ??= setTimeout(() => {
        this.#retry = null;
        this.#refill();
      }, RETRY_DELAY_MS);
    }
  }

  async #discard(slot: Slot): Promise<void> {
    try {
      await this.#options.remove(slot);
    } catch (error) {
      // The next `recover` finds and removes it.
      this.#options.logger.warn({ error, slot: slot.key }, 'A prepared network slot could not be removed');
    }
  }
}
