import { PlatformError } from '@svc/contract';
import { isOperator, type Caller } from './caller.ts';

/** Whose share something counts against: the slug of an organization or the id of a user; null: the operator's own. */
export type Owner = string | null;

const RETRY_AFTER_SECONDS = 1;

export function ownerOfCaller(caller: Caller): Owner {
  return isOperator(caller) ? null : caller.namespace;
}

/**
 * Limits concurrent calls, streams or sessions fairly between owners (a dynamic threshold). An owner may hold at most as many as
 * are free: one owner alone gets half, two owners a third each, and the next owner always finds some. Only the total limits the operator.
 */
export class FairLimit {
  readonly #capacity: number;
  readonly #counts = new Map<string, number>();
  #taken = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether the owner has as many as it may, although there is room for others. */
  isShareFull(owner: Owner): boolean {
    if (owner === null) return false;
    const own = this.#counts.get(owner) ?? 0;
    return own > 0 && own >= this.#capacity - this.#taken;
  }

  /**
   * Call what it returns at the end; again does nothing.
   * @throws PlatformError `rate_limited` when the share is used up, `unavailable` when everything is
   */
  enter(owner: Owner): () => void {
    const isFull = this.#taken >= this.#capacity;
    if (isFull || this.isShareFull(owner)) {
      const own = owner === null ? 0 : (this.#counts.get(owner) ?? 0);
      if (isFull && own === 0)
        throw new PlatformError('unavailable', 'the server is busy; try again in a moment', {
          details: { retry_after_seconds: RETRY_AFTER_SECONDS },
        });
      const message = 'as many calls of your organization are at work as may be; wait for one to end';
      throw new PlatformError('rate_limited', message, {
        details: { limit: 'calls', value: own, retry_after_seconds: RETRY_AFTER_SECONDS },
      });
    }
    this.#add(owner, 1);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      this.#add(owner, -1);
    };
  }

  #add(owner: Owner, change: 1 | -1): void {
    this.#taken += change;
    if (owner === null) return;
    const own = (this.#counts.get(owner) ?? 0) + change;
    if (own === 0) this.#counts.delete(owner);
    else this.#counts.set(owner, own);
  }
}
