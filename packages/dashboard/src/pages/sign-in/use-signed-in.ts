import { useQueryClient } from '@tanstack/react-query';
import { ACCOUNT } from '../../api/account.ts';
import { navigate } from '../../router/location.ts';

/** Call it when a session has begun: shows the signed-in page. The current address stays. */
export function useSignedIn(): () => Promise<void> {
  const cache = useQueryClient();
  return async () => {
    await cache.resetQueries({ queryKey: ACCOUNT.queryKey });
    if (/^\/(sign-in(\/provider)?|sign-up|invite)$/.test(location.pathname)) navigate('/', { replace: true });
  };
}
