import { flushCompileCache } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { PlatformError, type ErrorCode, type ErrorDetails } from '@svc/contract/errors';
import type { ImageLimits } from './image-limits.ts';
import type { TarKind } from './archive-reading.ts';
import { readArchive, type LayerArchive } from './layer-archive.ts';
import { recognizeArchive, spreadArchive } from './spread-archive.ts';
import { measureLayer, unpackLayer, type LayerLimits, type UnpackedLayer } from './unpack-layer.ts';

/** The tasks of the thread and their results. Plain data, because it crosses threads. */
export interface ArchiveWork {
  readonly unpack: {
    readonly input: {
      readonly archive: LayerArchive;
      readonly folder: string;
      readonly limits: LayerLimits;
    };
    readonly output: UnpackedLayer;
  };
  readonly measure: {
    readonly input: { readonly archive: LayerArchive; readonly limits: LayerLimits };
    readonly output: UnpackedLayer;
  };
  readonly spread: {
    readonly input: { readonly path: string; readonly folder: string; readonly limits: ImageLimits };
    readonly output: ReadonlyMap<string, string>;
  };
  readonly recognize: {
    readonly input: { readonly path: string };
    readonly output: TarKind;
  };
}
export type ArchiveTask = keyof ArchiveWork;

export interface ArchiveJob<Task extends ArchiveTask = ArchiveTask> {
  readonly id: number;
  readonly task: Task;
  readonly input: ArchiveWork[Task]['input'];
}

export type ArchiveRequest = { readonly start: ArchiveJob } | { readonly abort: number };

/** An error as plain data, to cross threads: `code` is null unless it is a `PlatformError`. */
export interface ArchiveFailure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly details: ErrorDetails | null;
}

export type ArchiveAnswer = { readonly id: number } & (
  | { readonly output: ArchiveWork[ArchiveTask]['output'] }
  | { readonly failure: ArchiveFailure }
);

const TASKS: {
  readonly [Task in ArchiveTask]: (
    input: ArchiveWork[Task]['input'],
    signal: AbortSignal,
  ) => Promise<ArchiveWork[Task]['output']>;
} = {
  unpack: ({ archive, folder, limits }, signal) =>
    unpackLayer(readArchive(archive, limits, signal), folder, limits, signal),
  measure: ({ archive, limits }, signal) =>
    measureLayer(readArchive(archive, limits, signal), limits, signal),
  spread: ({ path, folder, limits }, signal) => spreadArchive(path, folder, limits, signal),
  recognize: ({ path }, signal) => recognizeArchive(path, signal),
};

// The thread that `ArchiveReader` starts. Flushed here, because it ends with the process, which is too late to write the cache.
flushCompileCache();
const running = new Map<number, AbortController>();

parentPort?.on('message', (request: ArchiveRequest) => {
  if ('abort' in request) running.get(request.abort)?.abort(new Error('called off'));
  else void work(request.start);
});

async function work<Task extends ArchiveTask>({ id, task, input }: ArchiveJob<Task>): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const answer = await TASKS[task](input, abort.signal).then(
    (output): ArchiveAnswer => ({ id, output }),
    (error: unknown): ArchiveAnswer => ({ id, failure: failureOf(error) }),
  );
  running.delete(id);
  parentPort?.postMessage(answer, []);
}

function failureOf(error: unknown): ArchiveFailure {
  if (error instanceof PlatformError)
    return { code: error.code, message: error.message, details: error.details };
  return { code: null, message: error instanceof Error ? error.message : String(error), details: null };
}
