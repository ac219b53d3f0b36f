import { groupOfAddress } from '../http/connection-limit.ts';
import type { SshSettings } from './ssh-settings.ts';

const WINDOW_MS = 10_000;

interface Entry {
  readonly end: () => void;
}

/**
 * Limits connections that have not logged in yet, in all and per address (per /64 of IPv6), so that one address cannot
 * keep others out. When the limit is reached, a new connection replaces the oldest one of the address that has the most.
 */
export class UnauthenticatedConnections {
  readonly #limits: SshSettings['connections'];
  /** Oldest first. */
  readonly #byGroup = new Map<string, Set<Entry>>();
  readonly #arrivals = new Map<string, number>();
  #windowEndsAt = 0;
  #total = 0;
  #unauthenticated = 0;

  constructor(limits: SshSettings['connections']) {
    this.#limits = limits;
  }

  /**
   * Undefined when the connection is refused. `end` is called at most once, when the connection is replaced before it
   * has logged in. `loggedIn` and `gone` are idempotent.
   */
  admit(
    address: string,
    end: () => void,
  ): { readonly loggedIn: () => void; readonly gone: () => void } | undefined {
    const { total, unauthenticated, unauthenticatedPerAddress, newPerAddress } = this.#limits;
    const group = groupOfAddress(address);
    if (this.#countArrival(group) > newPerAddress) return undefined;
    const fromHere = this.#byGroup.get(group)?.size ?? 0;
    if (fromHere >= unauthenticatedPerAddress) return undefined;
    const isFull = this.#total >= total || this.#unauthenticated >= unauthenticated;
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

  /** @returns an idempotent function that removes the connection from the unauthenticated ones */
  #enter(group: string, end: () => void): () => void {
    const entries = this.#byGroup.get(group) ?? new Set();
    this.#byGroup.set(group, entries);
    const entry = { end };
    entries.add(entry);
    this.#unauthenticated += 1;
    return () => {
      if (!entries.delete(entry)) return;
      this.#unauthenticated -= 1;
      if (entries.size === 0) this.#byGroup.delete(group);
    };
  }

  /** Ends a connection only of an address that has more than the new connection's address. */
  #makeRoom(fromHere: number): boolean {
    let most: Set<Entry> | undefined;
    for (const entries of this.#byGroup.values()) if (entries.size > (most?.size ?? 0)) most = entries;
    const [oldest] = most ?? [];
    if (oldest === undefined || (most?.size ?? 0) <= fromHere) return false;
    oldest.end();
    return true;
  }
}
