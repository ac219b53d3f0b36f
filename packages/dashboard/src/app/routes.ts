import type { Role } from '@svc/contract/rest';
import type { ComponentType } from 'react';
import type { IconName } from '../parts/Icon.tsx';
import { lazyPage, type PageProps } from './lazy-page.ts';

/** The place of a page in the navigation; pages without it are reached from others. */
export interface NavigationEntry {
  readonly group: 'Run' | 'Resources' | 'Reports' | 'Organization';
  readonly label: string;
  readonly icon: IconName;
}

export interface Route {
  /** Below `/orgs/:slug` for pages of an organization; the shell knows which by that. */
  readonly path: string;
  readonly page: ComponentType<PageProps>;
  readonly entry?: NavigationEntry;
  /** The least role that sees the page; the server checks the role anyway. */
  readonly least?: Role;
}

/** A page without a session. */
export const OPEN_ROUTES: readonly Route[] = [
  { path: '/sign-in', page: lazyPage(() => import('../pages/sign-in/SignInPage.tsx'), 'SignInPage') },
  {
    path: '/sign-in/provider',
    page: lazyPage(() => import('../pages/sign-in/ProviderPage.tsx'), 'ProviderPage'),
  },
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
  {
    path: '/orgs/:slug/sandboxes/new',
    page: lazyPage(() => import('../pages/create-sandbox/CreateSandboxPage.tsx'), 'CreateSandboxPage'),
  },
  {
    path: '/orgs/:slug/sandboxes/:id',
    page: lazyPage(() => import('../pages/sandbox/SandboxPage.tsx'), 'SandboxPage'),
  },
  {
    path: '/orgs/:slug/sandboxes/:id/:view',
    page: lazyPage(() => import('../pages/sandbox/SandboxPage.tsx'), 'SandboxPage'),
  },
  {
    path: '/orgs/:slug/images',
    page: lazyPage(() => import('../pages/images/ImagesPage.tsx'), 'ImagesPage'),
    entry: { group: 'Resources', label: 'Images', icon: 'package' },
  },
  {
    path: '/orgs/:slug/snapshots',
    page: lazyPage(() => import('../pages/snapshots/SnapshotsPage.tsx'), 'SnapshotsPage'),
    entry: { group: 'Resources', label: 'Snapshots', icon: 'camera' },
  },
  {
    path: '/orgs/:slug/volumes',
    page: lazyPage(() => import('../pages/volumes/VolumesPage.tsx'), 'VolumesPage'),
    entry: { group: 'Resources', label: 'Volumes', icon: 'disk' },
  },
  {
    path: '/orgs/:slug/volumes/:id',
    page: lazyPage(() => import('../pages/volumes/VolumePage.tsx'), 'VolumePage'),
  },
  {
    path: '/orgs/:slug/secrets',
    page: lazyPage(() => import('../pages/secrets/SecretsPage.tsx'), 'SecretsPage'),
    entry: { group: 'Resources', label: 'Secrets', icon: 'shield' },
  },
  {
    path: '/orgs/:slug/usage',
    page: lazyPage(() => import('../pages/usage/UsagePage.tsx'), 'UsagePage'),
    entry: { group: 'Reports', label: 'Usage', icon: 'chart' },
  },
  {
    path: '/orgs/:slug/audit',
    page: lazyPage(() => import('../pages/audit/AuditPage.tsx'), 'AuditPage'),
    entry: { group: 'Reports', label: 'Audit log', icon: 'list' },
    least: 'admin',
  },
  {
    path: '/orgs/:slug/keys',
    page: lazyPage(() => import('../pages/keys/KeysPage.tsx'), 'KeysPage'),
    entry: { group: 'Organization', label: 'API keys', icon: 'key' },
  },
  {
    path: '/orgs/:slug/members',
    page: lazyPage(() => import('../pages/members/MembersPage.tsx'), 'MembersPage'),
    entry: { group: 'Organization', label: 'Members', icon: 'users' },
  },
  {
    path: '/orgs/:slug/webhooks',
    page: lazyPage(() => import('../pages/webhooks/WebhooksPage.tsx'), 'WebhooksPage'),
    entry: { group: 'Organization', label: 'Webhooks', icon: 'signal' },
    least: 'admin',
  },
  {
    path: '/orgs/:slug/webhooks/:id',
    page: lazyPage(() => import('../pages/webhooks/WebhookPage.tsx'), 'WebhookPage'),
  },
  {
    path: '/orgs/:slug/settings',
    page: lazyPage(() => import('../pages/settings/SettingsPage.tsx'), 'SettingsPage'),
    entry: { group: 'Organization', label: 'Settings', icon: 'gear' },
    least: 'admin',
  },
  {
    path: '/account',
    page: lazyPage(() => import('../pages/account/AccountPage.tsx'), 'AccountPage'),
  },
];
