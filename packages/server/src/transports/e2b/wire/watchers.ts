import { randomUUID } from 'node:crypto';
import { ConnectError } from './connect-error.ts';
import type { FilesystemEvent } from './filesystem-event.ts';

/** Of one sandbox at once. */
const MAX_WATCHERS = 16;
/** Events of one watcher that were not asked for yet. */
const MAX_EVENTS = 10_000;
/** A watcher that is not asked for so long is removed. */
const IDLE_MS = 10 * 60_000;

interface Watcher {
  readonly sandboxId: string;
  readonly stop: () => void;
  events: FilesystemEvent[];
  failure: unknown;
  idle: NodeJS.Timeout;
}

/** Watchers whose events clients fetch with further requests. They end with this server, or when they are not asked any more. */
export class Watchers {
  readonly #watchers = new Map<string, Watcher>();

  /** @param stop ends the events. @throws ConnectError `resource_exhausted` */
  add(sandboxId: string, events: AsyncIterable<FilesystemEvent>, stop: () => void): string {
    const own = [...this.#watchers.values()].filter((watcher) => watcher.sandboxId === sandboxId).length;
    if (own >= MAX_WATCHERS)
      throw new ConnectError(
        'resource_exhausted',
        `a sandbox has at most ${MAX_WATCHERS} watchers; stop one`,
      );
    const id = randomUUID();
    const watcher: Watcher = { sandboxId, stop, events: [], failure: null, idle: this.#expire(id) };
    this.#watchers.set(id, watcher);
    void collect(watcher, events);
    return id;
  }

  /** What happened since the last call. @throws ConnectError `not_found`, and what ended the watcher */
  take(sandboxId: string, id: string): readonly FilesystemEvent[] {
    const watcher = this.#require(sandboxId, id);
    clearTimeout(watcher.idle);
    watcher.idle = this.#expire(id);
    const { events, failure } = watcher;
    watcher.events = [];
    if (events.length === 0 && failure !== null) throw failure;
    return events;
  }

  remove(sandboxId: string, id: string): void {
    this.#require(sandboxId, id);
    this.#end(id);
  }

  close(): void {
    for (const id of this.#watchers.keys()) this.#end(id);
  }

  #require(sandboxId: string, id: string): Watcher {
    const watcher = this.#watchers.get(id);
    if (watcher?.sandboxId === sandboxId) return watcher;
    throw new ConnectError('not_found', `watcher with id ${id} not found`);
  }

  #end(id: string): void {
    const watcher = this.#watchers.get(id);
    this.#watchers.delete(id);
    clearTimeout(watcher?.idle);
    watcher?.stop();
  }

  #expire(id: string): NodeJS.Timeout {
    return setTimeout(() => this.#end(id), IDLE_MS).unref();
  }
}

async function collect(watcher: Watcher, events: AsyncIterable<FilesystemEvent>): Promise<void> {
  try {
    for await (const event of events) {
      if (watcher.events.length === MAX_EVENTS)
        throw new ConnectError(
          'resource_exhausted',
          `more than ${MAX_EVENTS} changes were not asked for in time`,
        );
      watcher.events.push(event);
    }
  } catch (error) {
    watcher.failure = error;
    watcher.stop();
  }
}
