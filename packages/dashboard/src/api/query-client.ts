import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { SvcError } from '@svc/sdk';
import { ACCOUNT } from './account.ts';

const FRESH_MS = 2000;

/** What the page knows of the server. Who finds their session to be over is asked to sign in, wherever they are. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError: noticeEnd }),
    mutationCache: new MutationCache({ onError: noticeEnd }),
    defaultOptions: {
      // Whether the browser believes to be online says nothing of a server on the same machine, or in the same house.
      queries: { staleTime: FRESH_MS, retry: shouldRetry, networkMode: 'always' },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
  return client;

  function noticeEnd(error: unknown): void {
    if (SvcError.is(error, 'invalid_api_key') && client.getQueryData(ACCOUNT.queryKey))
      void client.resetQueries({ queryKey: ACCOUNT.queryKey });
  }
}

/** What the server has said stays as it is; that it did not answer may not. */
function shouldRetry(failures: number, error: unknown): boolean {
  return failures < 2 && SvcError.is(error) && (error.status === null || error.status >= 502);
}
