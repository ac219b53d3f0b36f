import type { Role } from '@svc/contract/rest';
import type { Client } from '@svc/sdk';
import { createContext, useContext } from 'react';
import type { Organization } from './account.ts';
import { clientOf } from './client.ts';

/** The organization that the page is about; set by the shell, from the address. */
export const OrganizationContext = createContext<Organization | null>(null);

export function useOrganization(): Organization {
  const organization = useContext(OrganizationContext);
  if (organization === null) throw new Error('this page belongs to an organization');
  return organization;
}

/** For what a query is not made for: streams, channels, uploads. */
export function useClient(): Client {
  return clientOf(useOrganization().slug);
}

/** From least to most, as the contract orders them. */
const ORDER: readonly Role[] = ['member', 'admin', 'owner'];

/** Whether somebody with this role may do what takes `least`. The server decides; this only hides what it would refuse. */
export function canAct(role: Role, least: Role): boolean {
  return ORDER.indexOf(role) >= ORDER.indexOf(least);
}
