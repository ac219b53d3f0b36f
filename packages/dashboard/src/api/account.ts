import { queryOptions } from '@tanstack/react-query';
import { SvcError, type RestCallOutput } from '@svc/sdk';
import { createContext, useContext } from 'react';
import { clientOf } from './client.ts';

export type User = RestCallOutput<'users.get'>;
export type Organization = RestCallOutput<'organizations.list'>[number];

/** The user of the page. `session` is null in development mode, which has no sign-in. */
export interface Account {
  readonly user: User;
  readonly session: RestCallOutput<'session.get'> | null;
  readonly organizations: readonly Organization[];
}

/** Null: there is no signed-in user. */
export const ACCOUNT = queryOptions({
  queryKey: ['account'],
  queryFn: ({ signal }) => readAccount(signal),
  staleTime: 60_000,
});

/** Set by the component that shows pages to the account, so that they stay when the session ends. */
export const AccountContext = createContext<Account | null>(null);

export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error('pages are shown to who is signed in');
  return account;
}

async function readAccount(signal: AbortSignal): Promise<Account | null> {
  const client = clientOf(null);
  try {
    const [user, organizations, session] = await Promise.all([
      client.call('users.get', {}, { signal }),
      client.call('organizations.list', {}, { signal }),
      readSession(signal),
    ]);
    return { user, organizations, session };
  } catch (error) {
    if (SvcError.is(error, 'invalid_api_key')) return null;
    throw error;
  }
}

async function readSession(signal: AbortSignal): Promise<Account['session']> {
  try {
    return await clientOf(null).call('session.get', {}, { signal });
  } catch (error) {
    // Development mode has no session.
    if (SvcError.is(error, 'not_found')) return null;
    throw error;
  }
}
