import type { SandboxStatus } from '@svc/contract/rest';
import type { QueryClient } from '@tanstack/react-query';

interface Shown {
  readonly id: string;
  readonly status: SandboxStatus;
}

/** Shows a sandbox in this status wherever it is shown. What it returns shows everything as it was before. */
export function setShownStatus(cache: QueryClient, id: string, status: SandboxStatus): () => void {
  const isOfSandboxes = { predicate: ({ queryKey }: { queryKey: readonly unknown[] }) => isOf(queryKey) };
  const before = cache.getQueriesData(isOfSandboxes);
  cache.setQueriesData(isOfSandboxes, (data: unknown) => replace(data, id, status));
  return () => {
    for (const [key, data] of before) cache.setQueryData(key, data);
  };
}

function isOf(key: readonly unknown[]): boolean {
  return key[2] === 'sandboxes.list' || key[2] === 'sandboxes.get';
}

/** Answers hold a sandbox, a list of them, or pages of lists. */
function replace(data: unknown, id: string, status: SandboxStatus): unknown {
  if (Array.isArray(data)) return data.map((item) => replace(item, id, status));
  if (typeof data !== 'object' || data === null) return data;
  if ('id' in data && data.id === id && 'status' in data) return { ...(data as Shown), status };
  if ('data' in data) return { ...data, data: replace(data.data, id, status) };
  if ('pages' in data) return { ...data, pages: replace(data.pages, id, status) };
  return data;
}
