import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable } from './fields.ts';
import { DisplayName, Organization, OrganizationSlug, OrganizationWithRole } from './organization-fields.ts';
import type { RestOperation } from './rest-operation.ts';

const COMMON = {
  tag: 'organizations',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;
const OF_USER = { ...COMMON, audience: 'user' } as const;

export const organizationOperations = {
  'organizations.own': {
    ...COMMON,
    summary: 'Get the organization of the API key',
    method: 'GET',
    path: '/me/org',
    audience: 'key',
    role: 'member',
    body: null,
    output: OrganizationWithRole,
    errors: [],
  },
  'organizations.list': {
    ...OF_USER,
    summary: 'List the organizations that the user belongs to',
    takesLimitedSession: true,
    method: 'GET',
    path: '/orgs',
    role: 'member',
    body: null,
    output: Type.Array(OrganizationWithRole),
    errors: [],
  },
  'organizations.create': {
    ...OF_USER,
    summary: 'Create an organization, with the user as its owner',
    method: 'POST',
    path: '/orgs',
    role: 'member',
    body: strictObject({ name: DisplayName, slug: Type.Optional(OrganizationSlug) }),
    output: Organization,
    errors: ['name_already_exists', 'quota_exceeded'],
  },
  'organizations.get': {
    ...OF_USER,
    summary: 'Get an organization',
    method: 'GET',
    path: '/orgs/{slug}',
    role: 'member',
    body: null,
    output: OrganizationWithRole,
    errors: ['forbidden'],
  },
  'organizations.update': {
    ...OF_USER,
    summary: 'Change the name, slug or rules of an organization',
    method: 'PATCH',
    path: '/orgs/{slug}',
    role: 'admin',
    body: strictObject({
      name: Type.Optional(DisplayName),
      slug: Type.Optional(OrganizationSlug),
      mfa_required: Type.Optional(
        Type.Boolean({ description: 'Whether only people with a second factor come in' }),
      ),
    }),
    output: Organization,
    errors: ['forbidden', 'name_already_exists'],
  },
  'organizations.remove': {
    ...OF_USER,
    summary: 'Delete an organization with all that it has; its slug confirms it',
    method: 'DELETE',
    path: '/orgs/{slug}',
    role: 'owner',
    body: strictObject({ confirm: Type.String({ description: 'The slug of the organization' }) }),
    output: MessageResponse,
    errors: ['forbidden'],
  },
  'organizations.checkSandboxSlug': {
    ...OF_USER,
    tag: 'sandboxes',
    summary: 'Check whether a slug is valid and free for a sandbox',
    method: 'GET',
    path: '/orgs/{slug}/sandbox-slug/check',
    role: 'member',
    query: strictObject({ sandbox_slug: Type.String({ maxLength: 256 }) }),
    body: null,
    output: strictObject({
      sandbox_slug: Type.String(),
      valid: Type.Boolean(),
      available: Type.Boolean({ description: 'Valid, and no sandbox has it' }),
      reason: nullable(Type.String(), { description: 'Why it cannot be used' }),
    }),
    errors: ['forbidden'],
  },
  'organizations.suggestSandboxSlug': {
    ...OF_USER,
    tag: 'sandboxes',
    summary: 'Suggest a slug that is free for a sandbox',
    method: 'GET',
    path: '/orgs/{slug}/sandbox-slug/suggest',
    role: 'member',
    body: null,
    output: strictObject({ sandbox_slug: Type.String() }),
    errors: ['forbidden'],
  },
} as const satisfies Record<string, RestOperation>;
