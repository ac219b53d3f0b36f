import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { SvcError } from '@svc/sdk';
import { ACCOUNT } from './account.ts';

const FRESH_MS = 2000;

/** The cache of server answers. When a call finds that the session is over, the sign-in form is shown on every page. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError: noticeEnd }),
    mutationCache: new MutationCache({ onError: noticeEnd }),
    defaultOptions: {
      // The browser's online state does not matter for a server on the same machine or network.
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

/** Retries when the server did not answer: without a status, or with 502 and above. Its own errors are not retried. */
function shouldRetry(failures: number, error: unknown): boolean {
  return failures < 2 && SvcError.is(error) && (error.status === null || error.status >= 502);
}
