import type { TProperties, TSchema } from 'typebox';
import { Type } from '../schema/type.ts';

/** An object that refuses unknown fields: nothing a caller sends is silently ignored. */
export function strictObject<T extends TProperties>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

export const RESERVED_LABEL_PREFIXES = ['sandbox.', 'microsandbox.', 'service.', 'svc.'] as const;

export const MAX_LABELS = 64;

/**
 * A map whose every key matches the pattern. Without `additionalProperties: false` a key that does not match would be accepted
 * with an unchecked value.
 */
export function strictRecord<T extends TSchema>(
  keyPattern: string,
  value: T,
  options: { readonly maxProperties?: number; readonly description?: string } = {},
) {
  return Type.Record(Type.String({ pattern: keyPattern }), value, {
    ...options,
    additionalProperties: false,
  });
}

/** Keys that start with a reserved prefix are refused by `checkSpec`, which can say so in words. */
export const Labels = strictRecord(
  '^[^\\u0000]{1,256}$',
  Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' }),
  { maxProperties: MAX_LABELS },
);

/**
 * Programs by name. SAFETY: the names become names of files in the host's memory, so none may lead out of their folder, and
 * there are not too many.
 */
export const Scripts = strictRecord(
  '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
  Type.String({ maxLength: 1_048_576 }),
  { maxProperties: 256 },
);
