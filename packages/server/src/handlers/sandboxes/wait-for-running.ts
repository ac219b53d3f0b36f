import { PlatformError } from '@svc/contract';
import type { Convergence } from '../../sandboxes/convergence.ts';
import type { Database } from '../../store/database.ts';
import { getSandbox, type SandboxRecord } from '../../store/sandboxes.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';

const DEFAULT_WAIT_SECONDS = 90;
const MAX_WAIT_SECONDS = 3600;
/** Another server may have done the work, which is visible in the store alone. */
const POLL_MS = 1000;
const RETRY_AFTER_SECONDS = 1;
/** One organization gets at most one of so many parts of the places, so that others can wait too. */
const SHARES = 2;

export interface WaitQuery {
  readonly wait_for?: 'running';
  readonly wait_timeout?: number;
}

export interface WaitParts {
  readonly database: Database;
  readonly convergence: Convergence;
  readonly maxWaiters: number;
}

/** Holds answers until a sandbox runs. The number of places is limited, because each keeps a connection. */
export class Waiters {
  readonly #parts: WaitParts;
  #count = 0;
  /** Counts by organization; an entry exists while it is above zero. */
  readonly #counts = new Map<string, number>();

  constructor(parts: WaitParts) {
    this.#parts = parts;
  }

  /**
   * Takes a place before anything is changed, so that a call that cannot be held changes nothing. Dispose of it at the end.
   * @throws PlatformError `rate_limited`, `invalid_request`
   */
  reserve(query: WaitQuery, call: RestCall): Waiter {
    if (query.wait_for === undefined) {
      if (query.wait_timeout !== undefined) throw badField('wait_timeout', 'goes with wait_for=running only');
      return NO_WAITER;
    }
    const { id: organizationId } = call.organization;
    const own = this.#counts.get(organizationId) ?? 0;
    const { maxWaiters } = this.#parts;
    if (this.#count >= maxWaiters || own >= Math.ceil(maxWaiters / SHARES)) {
      throw new PlatformError('rate_limited', 'readiness wait capacity exhausted', {
        details: { max_waiters: maxWaiters, retry_after_seconds: RETRY_AFTER_SECONDS },
      });
    }
    this.#add(organizationId, 1);
    const seconds = Math.min(query.wait_timeout ?? DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS);
    return {
      wait: (record) => this.#wait(record, Date.now() + seconds * 1000, call.signal),
      [Symbol.dispose]: () => this.#add(organizationId, -1),
    };
  }

  #add(organizationId: string, change: 1 | -1): void {
    this.#count += change;
    const own = (this.#counts.get(organizationId) ?? 0) + change;
    if (own === 0) this.#counts.delete(organizationId);
    else this.#counts.set(organizationId, own);
  }

  async #wait(admitted: SandboxRecord, deadline: number, signal: AbortSignal): Promise<SandboxRecord> {
    const { database, convergence } = this.#parts;
    for (;;) {
      const leftMs = deadline - Date.now();
      // Listens before the record is read, so that no change is missed in between.
      using change = convergence.nextChange(admitted.id);
      const record = (await getSandbox(database, admitted.id)) ?? admitted;
      if (record.observed !== 'starting' || record.removedAt !== null || leftMs <= 0) return record;
      await change.within(Math.min(leftMs, POLL_MS), signal);
      signal.throwIfAborted();
    }
  }
}

export interface Waiter extends Disposable {
  /** Resolves with the record when it runs, has failed, or the time is over. */
  wait(admitted: SandboxRecord): Promise<SandboxRecord>;
}

const NO_WAITER: Waiter = {
  wait: (record) => Promise.resolve(record),
  [Symbol.dispose]: () => undefined,
};
