import { Type, type TProperties } from 'typebox';

/** An object that refuses unknown fields: nothing a caller sends is silently ignored. */
export function strictObject<T extends TProperties>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

export const RESERVED_LABEL_PREFIXES = ['sandbox.', 'microsandbox.', 'service.', 'svc.'] as const;

/** Keys that start with a reserved prefix are refused by `checkSpec`, which can say so in words. */
export const Labels = Type.Record(
  Type.String({ minLength: 1, maxLength: 256 }),
  Type.String({ maxLength: 4096 }),
);
