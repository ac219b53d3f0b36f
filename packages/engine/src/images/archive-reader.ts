import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { onAbort } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import type {
  ArchiveAnswer,
  ArchiveFailure,
  ArchiveRequest,
  ArchiveTask,
  ArchiveWork,
} from './archive-thread.ts';

/**
 * Reads archives on a worker thread: hashing them and copying their bytes between programs takes seconds, which must not block the main
 * thread. For each archive the thread starts processes without privileges that parse it. The thread starts with the first archive and runs
 * until this object is disposed.
 */
export class ArchiveReader implements AsyncDisposable {
  #worker: Worker | null = null;
  #lastId = 0;
  readonly #waiting = new Map<number, PromiseWithResolvers<ArchiveWork[ArchiveTask]['output']>>();

  /** See `ArchiveWork`. When it returns, also after an abort, none of its processes is running any more. */
  async run<Task extends ArchiveTask>(
    task: Task,
    input: ArchiveWork[Task]['input'],
    signal: AbortSignal,
  ): Promise<ArchiveWork[Task]['output']> {
    signal.throwIfAborted();
    this.#lastId += 1;
    const id = this.#lastId;
    const worker = (this.#worker ??= this.#start());
    const send = (request: ArchiveRequest) => worker.postMessage(request, []);
    const result = Promise.withResolvers<ArchiveWork[ArchiveTask]['output']>();
    this.#waiting.set(id, result);
    worker.ref();
    send({ start: { id, task, input } });
    const stopListening = onAbort(signal, () => send({ abort: id }));
    try {
      return await result.promise;
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      stopListening();
      this.#waiting.delete(id);
      // An idle thread must not keep the process from ending.
      if (this.#waiting.size === 0) worker.unref();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./archive-thread.ts', import.meta.url), {
      // SAFETY: the thread needs no other variable of this process's environment; the programs it starts get a list of their own.
      env: codeCache(),
    });
    worker.on('message', (answer: ArchiveAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      if ('output' in answer) waiting?.resolve(answer.output);
      else waiting?.reject(errorOf(answer.failure));
    });
    worker.on('error', (error: unknown) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, new Error('the thread that reads archives ended')));
    return worker;
  }

  /** The next archive gets a new thread. */
  #lose(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(error);
  }
}

/** The code cache; without it the thread would compile all modules, most of a second of CPU before its first archive. */
function codeCache(): Readonly<Record<string, string>> {
  const folder = getCompileCacheDir();
  // Node reports the folder of its version, which lies inside the configured one.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}

function errorOf({ code, message, details }: ArchiveFailure): Error {
  return code === null ? new Error(message) : new PlatformError(code, message, { details: details ?? {} });
}
