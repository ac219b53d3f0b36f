import { Worker } from 'node:worker_threads';
import { onAbort } from '@svc/contract/async';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import type { LayerArchive } from './layer-archive.ts';
import type { UnpackAnswer, UnpackFailure, UnpackJob, UnpackRequest } from './unpack-thread.ts';
import type { LayerLimits, UnpackedLayer } from './unpack-layer.ts';

/** Room for the names of a million files; a layer that needs more takes its thread down, not the engine. */
const MAX_HEAP_MIB = 512;

/**
 * Unpacks layers on a thread of their own: taking archives apart is work for seconds, and hostile bytes are better read
 * where running out of memory hurts nobody else. The thread starts with the first layer and stays.
 */
export class LayerUnpacker {
  #worker: Worker | null = null;
  #lastId = 0;
  readonly #waiting = new Map<number, PromiseWithResolvers<UnpackedLayer>>();

  /** The diff id that the archive has; nothing of it is kept. */
  async measure(archive: LayerArchive, limits: LayerLimits, signal: AbortSignal): Promise<string> {
    return (await this.#run({ archive, folder: null, limits }, signal)).diffId;
  }

  /** As `unpackLayer`. When it returns, also after an abort, nothing of it is running any more. */
  async unpack(
    archive: LayerArchive,
    folder: string,
    limits: LayerLimits,
    signal: AbortSignal,
  ): Promise<UnpackedLayer> {
    return await this.#run({ archive, folder, limits }, signal);
  }

  async #run(job: Omit<UnpackJob, 'id'>, signal: AbortSignal): Promise<UnpackedLayer> {
    signal.throwIfAborted();
    this.#lastId += 1;
    const id = this.#lastId;
    const worker = (this.#worker ??= this.#start());
    const send = (request: UnpackRequest) => worker.postMessage(request, []);
    const result = Promise.withResolvers<UnpackedLayer>();
    this.#waiting.set(id, result);
    worker.ref();
    send({ start: { id, ...job } });
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

  #start(): Worker {
    const worker = new Worker(new URL('./unpack-thread.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
      // SAFETY: the thread needs nothing of this process's environment; what it starts gets a list of its own.
      env: {},
    });
    worker.on('message', (answer: UnpackAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      if ('layer' in answer) waiting?.resolve(answer.layer);
      else waiting?.reject(errorOf(answer.failure));
    });
    worker.on('error', (error: unknown) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, new Error('the thread that unpacks layers ended')));
    return worker;
  }

  /** The next layer gets a new thread. */
  #lose(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const isTooLarge = isErrno(error, 'ERR_WORKER_OUT_OF_MEMORY');
    const reason = isTooLarge
      ? new PlatformError(
          'invalid_image',
          'The image was refused: a layer lists more files than fit into memory',
          { cause: error },
        )
      : error;
    for (const { reject } of this.#waiting.values()) reject(reason);
  }
}

function errorOf({ code, message, details }: UnpackFailure): Error {
  return code === null ? new Error(message) : new PlatformError(code, message, { details: details ?? {} });
}
