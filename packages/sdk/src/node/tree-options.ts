import { callOptionsOf, CallBudget, type CallOptions } from '../client/call-budget.ts';
import { SvcError } from '../svc-error.ts';

/** `timeoutMs` is for the whole tree. Errors of local files are thrown as Node throws them. */
export interface TreeOptions extends CallOptions {
  /** Called after every file. */
  readonly onFile?: (path: string, sizeBytes: number) => void;
}

/** Files copied in parallel: enough to hide the latency to the sandbox, few enough for its handles. */
const CONCURRENCY = 8;

/** Does the work for a tree within the time limit and signal of its caller. @throws SvcError `timeout`, `aborted` */
export async function withinTree<T>(
  options: TreeOptions,
  work: (call: CallOptions) => Promise<T>,
): Promise<T> {
  const budget = new CallBudget(callOptionsOf(options, { onFile: true }));
  try {
    budget.check();
    return await work({ signal: budget.signal });
  } catch (error) {
    budget.check();
    throw isUnspeakable(error) ? notUtf8(String(error.details?.['path'])) : error;
  } finally {
    budget.end();
  }
}

/** Paths are sent as text. */
export function notUtf8(path: string): SvcError {
  const message = `${path}: the name is not UTF-8, which cannot be copied; rename it, or copy a tar`;
  return new SvcError('invalid_request', message, { details: { path } });
}

/** A listed name with a replacement character that is then not found is really a name that is not UTF-8. */
function isUnspeakable(error: unknown): error is SvcError {
  return SvcError.is(error, 'not_found') && String(error.details?.['path']).includes('\uFFFD');
}

/** Processes all items, a few at a time. The first failure aborts the others and is thrown when all of them have ended. */
export async function forEachOf<T>(
  items: readonly T[],
  call: CallOptions,
  work: (item: T, call: CallOptions) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const { signal } = failed;
  const each = { signal: call.signal === undefined ? signal : AbortSignal.any([call.signal, signal]) };
  const rest = items.values();
  const workers = Array.from({ length: CONCURRENCY }, async () => {
    for (const item of rest) {
      if (signal.aborted) return;
      // The later failures are caused by that abort.
      await work(item, each).catch((error: unknown) => failed.abort(error));
    }
  });
  await Promise.all(workers);
  signal.throwIfAborted();
}
