import { QueryClientProvider, useQuery } from '@tanstack/react-query';
import { Suspense, useState } from 'react';
import { ACCOUNT, AccountContext, type Account } from '../api/account.ts';
import { OrganizationContext } from '../api/organization.ts';
import { createQueryClient } from '../api/query-client.ts';
import { Failure } from '../parts/Failure.tsx';
import { Loading, LoadingPage } from '../parts/Loading.tsx';
import { Toasts } from '../parts/Toasts.tsx';
import { usePath } from '../router/location.ts';
import { matchPath } from '../router/match-path.ts';
import { ErrorBoundary } from './ErrorBoundary.tsx';
import { NoOrganization } from './NoOrganization.tsx';
import { NotFound } from './NotFound.tsx';
import { Redirect } from './Redirect.tsx';
import { OPEN_ROUTES, ROUTES, type Route } from './routes.ts';
import { Shell } from './Shell.tsx';
import './style/tokens.css';
import './style/base.css';
import './style/shell.css';
import './style/parts.css';

export function App() {
  const [queries] = useState(createQueryClient);
  return (
    <QueryClientProvider client={queries}>
      <ErrorBoundary>
        <Suspense fallback={<Loading />}>
          <Entrance />
        </Suspense>
      </ErrorBoundary>
      <Toasts />
    </QueryClientProvider>
  );
}

/** Without a session every address shows the sign-in form in place, so no redirect target is needed. */
function Entrance() {
  const path = usePath();
  const { data: account, error, refetch } = useQuery(ACCOUNT);
  const open = findRoute(OPEN_ROUTES, path);
  if (open !== undefined) return <open.page params={open.params} />;
  if (account === undefined)
    return error === null ? <Loading /> : <Failure error={error} onRetry={() => void refetch()} />;
  const SignIn = OPEN_ROUTES[0]?.page;
  if (account === null) return SignIn === undefined ? null : <SignIn params={{}} />;
  return (
    <AccountContext value={account}>
      <SignedIn account={account} path={path} />
    </AccountContext>
  );
}

function SignedIn({ account, path }: { readonly account: Account; readonly path: string }) {
  const [first] = account.organizations;
  const slug = matchPath('/orgs/:slug/*', path)?.['slug'];
  const organization = account.organizations.find((each) => each.slug === slug);
  const route = findRoute(ROUTES, path);
  if (slug === undefined && first === undefined) return <NoOrganization />;
  if ((path === '/' || path === '/orgs') && first !== undefined)
    return <Redirect to={`/orgs/${first.slug}`} />;
  const isThere = route !== undefined && (slug === undefined || organization !== undefined);
  return (
    <OrganizationContext value={organization ?? null}>
      <Shell organization={organization ?? first ?? null}>
        {isThere ? (
          <Suspense key={slug} fallback={<LoadingPage />}>
            <route.page params={route.params} />
          </Suspense>
        ) : (
          <NotFound />
        )}
      </Shell>
    </OrganizationContext>
  );
}

function findRoute(routes: readonly Route[], path: string) {
  for (const route of routes) {
    const params = matchPath(route.path, path);
    if (params !== undefined) return { ...route, params };
  }
  return undefined;
}
