import { Worker } from 'node:worker_threads';
import { abortable } from '@svc/contract/async';

/**
 * `sha256:…` of the file's content. A disk of 4 GiB keeps a processor busy for some four seconds, so this happens on a thread of its
 * own. When it returns, also after an abort, the thread is over.
 */
export async function digestDisk(path: string, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const worker = new Worker(new URL('./digest-thread.ts', import.meta.url), { workerData: path, env: {} });
  worker.once('message', (digest: string) => resolve(digest));
  worker.once('error', reject);
  worker.once('exit', () => reject(new Error('the thread that hashes disks ended')));
  try {
    return await abortable(promise, signal);
  } finally {
    await worker.terminate();
  }
}
