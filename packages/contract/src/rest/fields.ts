import type { TSchema } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';

export const NO_FIELDS = strictObject({});

/** The hyphenated form; letters of either case. */
export const Uuid = Type.String({
  pattern: '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  description: 'UUID',
});

/** RFC 3339 in UTC, with milliseconds. */
export const Timestamp = Type.String({ description: 'RFC 3339, UTC' });

/** RFC 3339 from a caller, with any offset. */
export const TimestampInput = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,9})?([Zz]|[+-]\\d{2}:\\d{2})$',
  description: 'RFC 3339',
});

export function nullable<T extends TSchema>(schema: T, options: { description?: string } = {}) {
  return Type.Union([schema, Type.Null()], options);
}

export function optional<T extends TSchema>(schema: T, options: { description?: string } = {}) {
  return Type.Optional(Type.Union([schema, Type.Null()], options));
}

export const DEFAULT_PAGE_SIZE = 20;
export const MAX_PAGE_SIZE = 100;

/** Query fields of every list that comes in pages. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PAGE_SIZE,
      default: DEFAULT_PAGE_SIZE,
      description: 'Page size',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1024, description: '`next_cursor` of the page before' }),
  ),
};

export function pageOf<T extends TSchema>(item: T) {
  return strictObject(pageFields(item));
}

export function pageFields<T extends TSchema>(item: T) {
  return {
    data: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: nullable(Type.String(), { description: 'Null on the last page' }),
  };
}

export const MessageResponse = strictObject({
  message: Type.String({ description: 'A sentence that says what was done' }),
});

export const Confirmation = strictObject({ ok: Type.Boolean({ description: 'Always true' }) });
