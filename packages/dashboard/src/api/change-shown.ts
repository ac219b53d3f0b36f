import type { RestOperationName } from '@svc/contract/rest';
import type { QueryClient } from '@tanstack/react-query';

/**
 * An optimistic update: changes one item in all cached answers of these operations. `which` are fields that identify it. Returns a
 * function that restores the cached answers.
 */
export function changeShown(
  cache: QueryClient,
  names: readonly RestOperationName[],
  which: Readonly<Record<string, unknown>>,
  change: Readonly<Record<string, unknown>>,
): () => void {
  const filter = {
    predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => names.some((name) => name === queryKey[2]),
  };
  const before = cache.getQueriesData(filter);
  cache.setQueriesData(filter, (data: unknown) => replace(data, which, change));
  return () => {
    for (const [key, data] of before) cache.setQueryData(key, data);
  };
}

/** Answers hold an item, a list of them, or pages of lists. */
function replace(data: unknown, which: Readonly<Record<string, unknown>>, change: object): unknown {
  if (Array.isArray(data)) return data.map((item) => replace(item, which, change));
  if (typeof data !== 'object' || data === null) return data;
  const item = data as Readonly<Record<string, unknown>>;
  if (Object.entries(which).every(([name, value]) => item[name] === value)) return { ...item, ...change };
  if ('data' in item) return { ...item, data: replace(item['data'], which, change) };
  if ('pages' in item) return { ...item, pages: replace(item['pages'], which, change) };
  return data;
}
