import type { Role } from '@svc/contract/rest';
import type { ComponentType } from 'react';
import type { IconName } from '../parts/Icon.tsx';
import { lazyPage, type PageProps } from './lazy-page.ts';

/** Where a page stands in the navigation; pages without it are reached from others. */
export interface NavigationEntry {
  readonly group: 'Run' | 'Store' | 'Account for' | 'Organization';
  readonly label: string;
  readonly icon: IconName;
}

export interface Route {
  /** Below `/orgs/:slug` for pages of an organization; the shell knows which by that. */
  readonly path: string;
  readonly page: ComponentType<PageProps>;
  readonly entry?: NavigationEntry;
  /** Hidden from members with less; the server refuses them anyway. */
  readonly least?: Role;
}

/** For whoever is not signed in. */
export const OPEN_ROUTES: readonly Route[] = [
  { path: '/sign-in', page: lazyPage(() => import('../pages/sign-in/SignInPage.tsx'), 'SignInPage') },
  { path: '/sign-up', page: lazyPage(() => import('../pages/sign-in/SignUpPage.tsx'), 'SignUpPage') },
  { path: '/invite', page: lazyPage(() => import('../pages/sign-in/InvitePage.tsx'), 'InvitePage') },
];

/** In the order of the navigation; the first that fits an address shows it. */
export const ROUTES: readonly Route[] = [
  {
    path: '/orgs/:slug',
    page: lazyPage(() => import('../pages/overview/OverviewPage.tsx'), 'OverviewPage'),
    entry: { group: 'Run', label: 'Overview', icon: 'overview' },
  },
  {
    path: '/orgs/:slug/sandboxes',
    page: lazyPage(() => import('../pages/sandboxes/SandboxesPage.tsx'), 'SandboxesPage'),
    entry: { group: 'Run', label: 'Sandboxes', icon: 'box' },
  },
];
