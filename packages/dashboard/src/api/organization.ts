import type { Role } from '@svc/contract/rest';
import type { Client } from '@svc/sdk';
import { createContext, useContext } from 'react';
import type { Organization } from './account.ts';
import { clientOf } from './client.ts';

/** The organization of the page; set by the shell from the address. */
export const OrganizationContext = createContext<Organization | null>(null);

export function useOrganization(): Organization {
  const organization = useContext(OrganizationContext);
  if (organization === null) throw new Error('this page belongs to an organization');
  return organization;
}

/** The client for streams, channels and uploads, which are not queries. */
export function useClient(): Client {
  return clientOf(useOrganization().slug);
}

/** The roles from least to most, in the order of the contract. */
const ORDER: readonly Role[] = ['member', 'admin', 'owner'];

/** Whether this role includes the role `least`. The server decides; this only hides what it would refuse. */
export function canAct(role: Role, least: Role): boolean {
  return ORDER.indexOf(role) >= ORDER.indexOf(least);
}
