import { groupOfAddress } from '../http/connection-shares.ts';
import type { SshSettings } from './ssh-settings.ts';

const WINDOW_MS = 10_000;

interface Place {
  readonly end: () => void;
}

/**
 * Counts connections, so that nobody who is not logged in can keep others from it: an address, or a whole /64 of IPv6, has so many places,
 * and when all are taken a new one gets that of whoever has the most, the oldest of them.
 */
export class Strangers {
  readonly #limits: SshSettings['connections'];
  /** Oldest first. */
  readonly #byGroup = new Map<string, Set<Place>>();
  readonly #arrivals = new Map<string, number>();
  #windowEndsAt = 0;
  #total = 0;
  #strangers = 0;

  constructor(limits: SshSettings['connections']) {
    this.#limits = limits;
  }

  /**
   * Undefined when there is no room. `end` is called at most once, when the place is taken away while nobody is logged in. Each function
   * may be called once more without harm.
   */
  admit(
    address: string,
    end: () => void,
  ): { readonly loggedIn: () => void; readonly gone: () => void } | undefined {
    const { total, strangers, strangersPerAddress, newPerAddress } = this.#limits;
    const group = groupOfAddress(address);
    if (this.#countArrival(group) > newPerAddress) return undefined;
    const fromHere = this.#byGroup.get(group)?.size ?? 0;
    if (fromHere >= strangersPerAddress) return undefined;
    const isFull = this.#total >= total || this.#strangers >= strangers;
    if (isFull && !this.#makeRoom(fromHere)) return undefined;
    this.#total += 1;
    let isGone = false;
    const loggedIn = this.#enter(group, () => {
      gone();
      end();
    });
    const gone = () => {
      if (isGone) return;
      isGone = true;
      loggedIn();
      this.#total -= 1;
    };
    return { loggedIn, gone };
  }

  #countArrival(group: string): number {
    const now = performance.now();
    if (now >= this.#windowEndsAt) {
      this.#windowEndsAt = now + WINDOW_MS;
      this.#arrivals.clear();
    }
    const count = (this.#arrivals.get(group) ?? 0) + 1;
    this.#arrivals.set(group, count);
    return count;
  }

  /** @returns what makes it no stranger any more */
  #enter(group: string, end: () => void): () => void {
    const places = this.#byGroup.get(group) ?? new Set();
    this.#byGroup.set(group, places);
    const place = { end };
    places.add(place);
    this.#strangers += 1;
    return () => {
      if (!places.delete(place)) return;
      this.#strangers -= 1;
      if (places.size === 0) this.#byGroup.delete(group);
    };
  }

  /** Nobody is pushed out by those who have more than they. */
  #makeRoom(fromHere: number): boolean {
    let most: Set<Place> | undefined;
    for (const places of this.#byGroup.values()) if (places.size > (most?.size ?? 0)) most = places;
    const [oldest] = most ?? [];
    if (oldest === undefined || (most?.size ?? 0) <= fromHere) return false;
    oldest.end();
    return true;
  }
}
