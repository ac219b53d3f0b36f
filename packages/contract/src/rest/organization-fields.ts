import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { Timestamp, Uuid } from './fields.ts';
import { ROLES } from './rest-operation.ts';

export const ORGANIZATION_SLUG_PATTERN = '^(?=.{1,63}$)[a-z0-9]+(-[a-z0-9]+)*$';

/** Stricter than the namespaces of the self-hosted surface, so that every slug is also a legal name of one. */
export const OrganizationSlug = Type.String({
  pattern: ORGANIZATION_SLUG_PATTERN,
  description:
    '1–63 lowercase letters, digits and single hyphens; also its namespace on the self-hosted surface',
});

/** The display name of an organization, a credential or a user. */
export const DisplayName = Type.String({
  pattern: '^(?=[^\\u0000-\\u001f\\u007f]{1,128}$)\\S(.*\\S)?$',
  description: '1–128 characters on one line, without space around',
});

export const RoleName = Type.Enum([...ROLES], { description: 'Each may do what those before it may' });

export const Email = Type.String({
  pattern: '^(?=.{3,254}$)[^\\s@\\u0000-\\u001f]+@[^\\s@\\u0000-\\u001f]+$',
  description: 'An address; upper and lower case are the same',
});

const ORGANIZATION = {
  id: Uuid,
  name: Type.String(),
  slug: Type.String(),
  plan: Type.String(),
  mfa_required: Type.Boolean(),
  is_suspended: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
};

export const Organization = strictObject(ORGANIZATION);
export const OrganizationWithRole = strictObject({ ...ORGANIZATION, role: RoleName });
