import { Worker } from 'node:worker_threads';

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
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}
