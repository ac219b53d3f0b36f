import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject, strictRecord } from '../spec/strict.ts';

/** Largest form of one result, as it is sent: images are a third larger in base64. */
export const MAX_FORM_BYTES = 4 * 1024 * 1024;
/** Limit for all results of a run together. */
export const MAX_RESULTS_BYTES = 8 * 1024 * 1024;
export const MAX_RESULTS = 256;
export const TABLE_TYPE = 'application/vnd.svc.table+json';
export const MIME_TYPE_PATTERN = '^[a-z0-9][a-z0-9.+_-]{0,62}/[a-z0-9][a-z0-9.+_-]{0,62}$';

/** A table as data: the content of a form of type `TABLE_TYPE`. */
export const ResultTable = strictObject({
  columns: Type.Array(strictObject({ name: Type.String(), type: Type.String() }), { maxItems: 256 }),
  rows: Type.Array(
    Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), { maxItems: 256 }),
    { maxItems: 1000 },
  ),
  row_count: Type.Integer({ minimum: 0, description: 'Of the whole table' }),
  truncated: Type.Boolean({ description: 'There are more rows or columns than are here' }),
});

const LeftOut = strictObject({
  type: Type.String({ description: 'The MIME type of the form that is missing, or was cut' }),
  bytes: Type.Union([Type.Integer(), Type.Null()], { description: 'How large it is, when that is known' }),
  reason: Type.Enum(['too_large', 'too_many', 'failed', 'invalid']),
  message: Type.String({ description: 'Why, and how to have it all the same' }),
});
export type LeftOut = Static<typeof LeftOut>;

/** A value that code showed: one thing, in as many forms as it has. */
export const CodeRunResult = strictObject({
  data: strictRecord(MIME_TYPE_PATTERN, Type.Unknown(), {
    description:
      'By MIME type: text as it is, images and PDF in base64, `application/json` and types that end in `+json` as JSON',
  }),
  metadata: strictRecord(MIME_TYPE_PATTERN, Type.Unknown(), {
    description: 'What the value says about its forms, by MIME type',
  }),
  is_main_result: Type.Boolean({
    description: 'The value of a last bare expression; others were shown on the way',
  }),
  truncated: Type.Boolean({ description: 'Something of it is missing: `left_out` says what' }),
  left_out: Type.Array(LeftOut),
});
export type CodeRunResult = Static<typeof CodeRunResult>;
