import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { MAX_ENTRIES, placeholderFor, SecretEntry, Secrets } from './secrets.ts';
import { strictObject } from './strict.ts';

/** An entry as callers may send it. */
export const SecretEntryRequest = strictObject({
  ...SecretEntry.properties,
  placeholder: Type.Optional(
    Type.String({
      ...SecretEntry.properties.placeholder,
      description: `What processes see instead of the value; ${placeholderFor('<env_var>')} unless given`,
    }),
  ),
});
const Entries = Type.Array(SecretEntryRequest, { maxItems: MAX_ENTRIES });

/** Secrets as callers may send them. */
export const SecretsRequest = Type.Union(
  [strictObject({ ...Secrets.properties, entries: Entries }), Entries],
  {
    description: 'A list stands for its entries alone',
  },
);
type SecretsRequest = Static<typeof SecretsRequest>;

/** Converts the network of a request: its secrets get the form that a spec has. */
export function readSecrets<T extends { secrets?: SecretsRequest | null }>(
  network: T,
): Omit<T, 'secrets'> & { secrets?: Secrets | null } {
  const { secrets, ...rest } = network;
  if (secrets === undefined) return rest;
  if (secrets === null) return { ...rest, secrets };
  const whole = Array.isArray(secrets) ? { entries: secrets } : secrets;
  const entries = whole.entries.map((entry) => ({ placeholder: placeholderFor(entry.env_var), ...entry }));
  return { ...rest, secrets: { ...whole, entries } };
}
