import type { CallOptions } from '../client/call-budget.ts';

export interface TreeOptions extends CallOptions {
  /** Told of every file that is done. */
  readonly onFile?: (path: string, sizeBytes: number) => void;
}

/** Files under way at once: enough to hide the way to the sandbox, few enough for its handles. */
const CONCURRENCY = 8;

/** Does the work of all items, a few at a time; the first failure ends it. */
export async function forEachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const workers = Array.from({ length: CONCURRENCY }, async () => {
    for (const item of rest) await work(item);
  });
  await Promise.all(workers);
}
