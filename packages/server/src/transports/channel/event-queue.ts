import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../store/database.ts';
import { inTransaction } from '../../store/in-transaction.ts';
import { appendEvent, type NewEvent } from '../../store/events.ts';

/** A commit per process would cost more than starting the process. */
const GATHER_MS = 10;

interface Waiting {
  readonly event: NewEvent;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * Writes audit events of things that have no transaction of their own. Events of one organization are written in the order
 * in which they came, as many together as gather in a moment: a chain is one row, and each commit waits for the disk, with
 * SQLite everybody with it.
 */
export class EventQueue {
  readonly #database: Database;
  /** By organization; an entry exists while somebody writes. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #writing = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Resolves when the event is on the disk. */
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

  /** Nothing waits to be written any more when this is over. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#writing);
  }

  async #write(organizationId: string): Promise<void> {
    for (;;) {
      // At the end of the server nothing more gathers.
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
