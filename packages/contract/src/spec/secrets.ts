import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from './strict.ts';

/** The most secrets of one sandbox: each of its requests is searched for all of them. */
export const MAX_ENTRIES = 64;
export const MAX_HOSTS = 64;
export const MAX_PLACEHOLDER_BYTES = 1024;

/** A name that a secret of an organization is kept under; every name of a shell variable is one. */
export const SecretName = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$',
  description: '1–128 letters, digits, dots, hyphens or underscores; the first one a letter or underscore',
});

/** The value, which is kept outside of the sandbox. */
export const SecretValue = Type.String({ maxLength: 16_384, pattern: '^[^\\u0000]*$' });

const HostName = Type.String({ minLength: 1, maxLength: 253 });
const Named = [
  strictObject({ type: Type.Literal('exact'), value: HostName }),
  strictObject({ type: Type.Literal('wildcard'), value: HostName }),
] as const;
export const HostPattern = Type.Union([...Named, strictObject({ type: Type.Literal('any') })]);
export type HostPattern = Static<typeof HostPattern>;

/** For a secret of an organization, whose hosts are all named. */
export const NamedHost = Type.Union([...Named]);
export type NamedHost = Static<typeof NamedHost>;

const BlockingAction = strictObject({ type: Type.Enum(['block', 'block_and_log', 'block_and_terminate']) });
export const ViolationAction = Type.Union([
  BlockingAction,
  strictObject({
    type: Type.Literal('passthrough'),
    hosts: Type.Array(HostPattern, { maxItems: MAX_HOSTS }),
  }),
]);

/** What `on_violation` says, in the words of newer clients: the hosts apart from the action for all others. */
const NEWER_ACTION = {
  passthrough_hosts: Type.Optional(
    Type.Array(HostPattern, {
      maxItems: MAX_HOSTS,
      description: 'Hosts that are sent the placeholder as it is; instead of `on_violation`',
    }),
  ),
  violation_action: Type.Optional(
    Type.Union([BlockingAction, Type.Null()], {
      description: 'When a placeholder is sent to any other host; instead of `on_violation`',
    }),
  ),
};

const MAX_HEADER_FIELDS = 64;
const HeaderName = Type.String({
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$",
  description: 'A name of a header: 1–256 letters, digits or hyphens, and no space',
});
/** What `injection` says, in the words of newer clients. */
const Substitution = strictObject({
  headers: Type.Optional(
    Type.Boolean({ description: 'In headers, and in the password of Basic; true unless given' }),
  ),
  header_fields: Type.Optional(
    Type.Array(HeaderName, {
      maxItems: MAX_HEADER_FIELDS,
      description: 'The only headers in which it is replaced; empty: all of them',
    }),
  ),
  query: Type.Optional(Type.Boolean()),
  body: Type.Optional(Type.Boolean()),
});

const Source = Type.Union([
  Type.Null(),
  strictObject({ type: Type.Literal('env'), var: SecretName }),
  strictObject({ type: Type.Literal('store'), reference: SecretName }),
]);
export type SecretSource = NonNullable<Static<typeof Source>>;

/** What processes see instead of the value, unless the entry says. */
export function placeholderFor(variable: string): string {
  return `$SVC_${variable}`;
}

export const SecretEntry = strictObject({
  env_var: Type.String({ pattern: '^[^=\\u0000]+$', maxLength: 4096 }),
  placeholder: Type.String({
    pattern: '^[^\\u0000\\r\\n]+$',
    maxLength: MAX_PLACEHOLDER_BYTES,
    description: `What processes see instead of the value; at most ${MAX_PLACEHOLDER_BYTES} bytes`,
  }),
  value: Type.Optional(SecretValue),
  source: Type.Optional(
    Type.Union(Source.anyOf, {
      description: 'Without a value: the secret of the organization that has this name',
    }),
  ),
  allowed_hosts: Type.Array(HostPattern, { maxItems: MAX_HOSTS }),
  injection: Type.Optional(
    strictObject({
      headers: Type.Optional(Type.Boolean()),
      basic_auth: Type.Optional(Type.Boolean()),
      query_params: Type.Optional(Type.Boolean()),
      body: Type.Optional(Type.Boolean()),
    }),
  ),
  substitution: Type.Optional(Substitution),
  on_violation: Type.Optional(Type.Union([ViolationAction, Type.Null()])),
  ...NEWER_ACTION,
  require_tls_identity: Type.Optional(Type.Boolean()),
});
export type SecretEntry = Static<typeof SecretEntry>;

/** Values that a sandbox uses towards certain hosts and never holds. */
export const Secrets = strictObject({
  entries: Type.Array(SecretEntry, { maxItems: MAX_ENTRIES }),
  on_violation: Type.Optional(ViolationAction),
  ...NEWER_ACTION,
});
export type Secrets = Static<typeof Secrets>;
