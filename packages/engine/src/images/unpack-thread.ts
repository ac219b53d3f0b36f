import { parentPort } from 'node:worker_threads';
import { PlatformError, type ErrorCode, type ErrorDetails } from '@svc/contract/errors';
import { readArchive, type LayerArchive } from './layer-archive.ts';
import { measureLayer, unpackLayer, type LayerLimits, type UnpackedLayer } from './unpack-layer.ts';

export interface UnpackJob {
  readonly id: number;
  readonly archive: LayerArchive;
  /** Null only measures the archive. */
  readonly folder: string | null;
  readonly limits: LayerLimits;
}

export type UnpackRequest = { readonly start: UnpackJob } | { readonly abort: number };

/** An error in a form that crosses threads: `code` is null for what is not a `PlatformError`. */
export interface UnpackFailure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly details: ErrorDetails | null;
}

export type UnpackAnswer = { readonly id: number } & (
  | { readonly layer: UnpackedLayer }
  | { readonly failure: UnpackFailure }
);

// The body of the thread that `LayerUnpacker` starts. It ends with the process.
const running = new Map<number, AbortController>();

parentPort?.on('message', (request: UnpackRequest) => {
  if ('abort' in request) running.get(request.abort)?.abort(new Error('called off'));
  else void work(request.start);
});

async function work({ id, archive, folder, limits }: UnpackJob): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const tar = readArchive(archive, limits, abort.signal);
  const done =
    folder === null
      ? measureLayer(tar, limits, abort.signal)
      : unpackLayer(tar, folder, limits, abort.signal);
  const answer = await done.then(
    (layer): UnpackAnswer => ({ id, layer }),
    (error: unknown): UnpackAnswer => ({ id, failure: failureOf(error) }),
  );
  running.delete(id);
  parentPort?.postMessage(answer, []);
}

function failureOf(error: unknown): UnpackFailure {
  if (error instanceof PlatformError)
    return { code: error.code, message: error.message, details: error.details };
  return { code: null, message: error instanceof Error ? error.message : String(error), details: null };
}
