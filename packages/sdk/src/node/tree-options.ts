import { callOptionsOf, CallBudget, type CallOptions } from '../client/call-budget.ts';
import { SvcError } from '../svc-error.ts';

/** `timeoutMs` is for all of it. Failures of files on this machine are thrown as Node throws them. */
export interface TreeOptions extends CallOptions {
  /** Told of every file that is done. */
  readonly onFile?: (path: string, sizeBytes: number) => void;
}

/** Files under way at once: enough to hide the way to the sandbox, few enough for its handles. */
const CONCURRENCY = 8;

/** Does all that belongs to one tree within what its caller gives it. @throws SvcError `timeout`, `aborted` */
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

/** Paths go over the wire as text. */
export function notUtf8(path: string): SvcError {
  const message = `${path}: the name is not UTF-8, which cannot be copied; rename it, or copy a tar`;
  return new SvcError('invalid_request', message, { details: { path } });
}

/** What a sandbox lists with a replacement character, and then does not find under that name, is called otherwise. */
function isUnspeakable(error: unknown): error is SvcError {
  return SvcError.is(error, 'not_found') && String(error.details?.['path']).includes('\uFFFD');
}

/** Does the work of all items, a few at a time. The first failure ends what is under way, and is thrown when all of it has ended. */
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
      // What the others then fail with is our doing.
      await work(item, each).catch((error: unknown) => failed.abort(error));
    }
  });
  await Promise.all(workers);
  signal.throwIfAborted();
}
