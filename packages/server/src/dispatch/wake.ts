import { EventEmitter, once } from 'node:events';
import type { Database } from '../store/database.ts';

/** Notifies waiters of this process that a piece of work has ended. */
export interface Wake {
  wake(name: string): void;
  /** Notices every end from now on, until it is disposed of. */
  listen(name: string): Listening;
}

export interface Listening extends Disposable {
  /** Resolves after an end since `listen`, or after `timeoutMs`. @throws when the signal aborts */
  happens(timeoutMs: number, signal: AbortSignal): Promise<void>;
}

const wakes = new WeakMap<Database, Wake>();

/** One instance per store. */
export function wakeOf(database: Database): Wake {
  let wake = wakes.get(database);
  if (wake === undefined) wakes.set(database, (wake = createWake()));
  return wake;
}

function createWake(): Wake {
  const ends = new EventEmitter();
  // One listener per waiting request, without a limit.
  ends.setMaxListeners(0);
  return {
    wake: (name) => void ends.emit(name),
    listen: (name) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.once(name, resolve);
      return {
        happens: async (timeoutMs, signal) => {
          signal.throwIfAborted();
          const timer = setTimeout(resolve, timeoutMs);
          const gone = new AbortController();
          try {
            await Promise.race([promise, rejectOnAbort(signal, gone.signal)]);
          } finally {
            gone.abort();
            clearTimeout(timer);
          }
        },
        [Symbol.dispose]: () => void ends.off(name, resolve),
      };
    },
  };
}

async function rejectOnAbort(signal: AbortSignal, until: AbortSignal): Promise<void> {
  try {
    await once(signal, 'abort', { signal: until });
  } catch {
    // There are no listeners left.
    return;
  }
  signal.throwIfAborted();
}
