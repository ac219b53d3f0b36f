import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { MessageResponse, NO_FIELDS, nullable, Timestamp } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';

const FIELDS = {
  issuer_url: Type.String({
    pattern: '^https?://[\\x21-\\x7e]{1,500}$',
    description: 'As the provider calls itself; below it lies /.well-known/openid-configuration',
  }),
  client_id: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'What the provider knows this server as',
  }),
};
const AllowedDomains = Type.Array(
  Type.String({ pattern: '^(?=.{1,253}$)[a-z0-9-]+(\\.[a-z0-9-]+)+$', description: 'In lower case' }),
  {
    maxItems: 32,
    description: 'Who has a confirmed address in one of these joins as a member; others need an invite',
  },
);

const IdentityProvider = strictObject({
  ...FIELDS,
  has_client_secret: Type.Boolean(),
  allowed_domains: AllowedDomains,
  created_at: Timestamp,
  updated_at: Timestamp,
});

const COMMON = {
  tag: 'organizations',
  audience: 'user',
  role: 'owner',
  path: '/orgs/{slug}/oidc',
  params: NO_FIELDS,
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

/** Where the members of an organization sign in: OpenID Connect. */
export const identityProviderOperations = {
  'identityProvider.get': {
    ...COMMON,
    summary: 'Get the identity provider of the organization',
    method: 'GET',
    body: null,
    output: IdentityProvider,
    errors: ['forbidden', 'not_found'],
  },
  'identityProvider.put': {
    ...COMMON,
    summary: 'Let members sign in at an identity provider, which is asked whether it is one',
    method: 'PUT',
    body: strictObject({
      ...FIELDS,
      client_secret: Type.Optional(
        nullable(Type.String({ minLength: 1, maxLength: 2000 }), {
          description: 'Never shown; absent: stays as it is; null: the provider asks for none',
        }),
      ),
      allowed_domains: Type.Optional(AllowedDomains),
    }),
    output: IdentityProvider,
    errors: ['forbidden'],
  },
  'identityProvider.remove': {
    ...COMMON,
    summary: 'Remove the identity provider; sessions that began there end',
    method: 'DELETE',
    body: null,
    output: MessageResponse,
    errors: ['forbidden', 'not_found'],
  },
} as const satisfies Record<string, RestOperation>;
