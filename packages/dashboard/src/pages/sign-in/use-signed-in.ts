import { useQueryClient } from '@tanstack/react-query';
import { ACCOUNT } from '../../api/account.ts';
import { navigate } from '../../router/location.ts';

/** To be called when a session has begun: shows what it reaches. Who was on another page stays there. */
export function useSignedIn(): () => Promise<void> {
  const cache = useQueryClient();
  return async () => {
    await cache.resetQueries({ queryKey: ACCOUNT.queryKey });
    if (/^\/(sign-in(\/provider)?|sign-up|invite)$/.test(location.pathname)) navigate('/', { replace: true });
  };
}
