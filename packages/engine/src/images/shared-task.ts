import { abortable } from '@svc/contract/async';
import type { ImageProgress } from './images.ts';

type OnProgress = (progress: ImageProgress) => void;

interface Running<T> {
  readonly result: Promise<T>;
  readonly abort: AbortController;
  readonly listeners: Set<OnProgress>;
  latest: ImageProgress | null;
  callers: number;
}

/**
 * Runs a task once for all callers that request it at the same time. A caller that joins later receives the latest progress first. A caller
 * that aborts leaves; the task is aborted with the last one.
 */
export class SharedTasks<T> {
  readonly #running = new Map<string, Running<T>>();

  async run(
    key: string,
    start: (onProgress: OnProgress, signal: AbortSignal) => Promise<T>,
    caller: { readonly onProgress: OnProgress; readonly signal: AbortSignal },
  ): Promise<T> {
    caller.signal.throwIfAborted();
    const task = this.#running.get(key) ?? this.#start(key, start);
    if (task.latest !== null) caller.onProgress(task.latest);
    // A new function each time: two callers may pass the same one, and both count.
    const listener: OnProgress = (progress) => caller.onProgress(progress);
    task.listeners.add(listener);
    task.callers += 1;
    try {
      return await abortable(task.result, caller.signal);
    } finally {
      task.listeners.delete(listener);
      task.callers -= 1;
      if (task.callers === 0) {
        task.abort.abort(caller.signal.reason);
        // The last caller waits for the task to end, so that nothing of it runs afterwards.
        await task.result.catch(() => {});
      }
    }
  }

  #start(key: string, start: (onProgress: OnProgress, signal: AbortSignal) => Promise<T>): Running<T> {
    const abort = new AbortController();
    const listeners = new Set<OnProgress>();
    const emit: OnProgress = (progress) => {
      task.latest = progress;
      for (const listener of listeners) listener(progress);
    };
    const result = Promise.resolve()
      .then(() => start(emit, abort.signal))
      .finally(() => {
        if (this.#running.get(key) === task) this.#running.delete(key);
      });
    const task: Running<T> = { result, abort, listeners, latest: null, callers: 0 };
    // All callers may have left before the task fails.
    result.catch(() => {});
    // A task that is being aborted takes no new callers.
    abort.signal.addEventListener('abort', () => {
      if (this.#running.get(key) === task) this.#running.delete(key);
    });
    this.#running.set(key, task);
    return task;
  }
}
