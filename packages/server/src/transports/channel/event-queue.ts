import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../store/database.ts';
import { inTransaction } from '../../store/in-transaction.ts';
import { appendEvent, type NewEvent } from '../../store/events.ts';

/** Time to collect a batch: a commit per process would cost more than starting the process. */
const GATHER_MS = 10;

interface Waiting {
  readonly event: NewEvent;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Writes audit events that belong to no transaction, in batches. Events of one organization are written in order.
 * Batches because a chain is serialized by one row, and each commit waits for the disk, on SQLite together with all
 * other writers.
 */
export class EventQueue {
  readonly #database: Database;
  /** By organization; an entry exists while a writer is active. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #writing = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves after fsync of the event. */
  append(event: NewEvent): Promise<void> {
    const waiting: Waiting = { event, done: Promise.withResolvers<void>() };
    const queue = this.#waiting.get(event.organizationId);
    if (queue === undefined) {
      this.#waiting.set(event.organizationId, [waiting]);
      const writing = this.#write(event.organizationId).finally(() => this.#writing.delete(writing));
      this.#writing.add(writing);
    } else queue.push(waiting);
    return waiting.done.promise;
  }

  /** Resolves when all events are written. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#writing);
  }

  async #write(organizationId: string): Promise<void> {
    for (;;) {
      // `close` ends the collection early.
      await delay(GATHER_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
      const batch = this.#waiting.get(organizationId) ?? [];
      if (batch.length === 0) return void this.#waiting.delete(organizationId);
      this.#waiting.set(organizationId, []);
      try {
        await inTransaction(this.#database, async (transaction) => {
          for (const { event } of batch) await appendEvent(transaction, event);
        });
        for (const { done } of batch) done.resolve();
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
  }
}
