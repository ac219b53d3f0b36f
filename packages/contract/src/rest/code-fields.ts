import type { Static } from 'typebox';
import { Type } from '../schema/type.ts';
import { KERNEL_NAME_PATTERN, LANGUAGES } from '../operations/code.ts';
import { CodeRunResult } from '../operations/code-results.ts';
import { MAX_TIMEOUT_SECONDS } from '../operations/run-limits.ts';
import { strictObject, strictRecord } from '../spec/strict.ts';
import { nullable, optional, Timestamp } from './fields.ts';

export const MAX_CODE_CONTEXTS = 16;
/** Characters of each stream in an answer that is not streamed. */
export const MAX_ANSWERED_OUTPUT_LENGTH = 1024 * 1024;
const MAX_VARIABLES = 1024;
const VARIABLE_NAME = '^[^=\\u0000]+$';
const MS_PER_SECOND = 1000;

const Word = Type.String({ pattern: '^[^\\u0000]*$' });
const Language = Type.Enum(Object.keys(LANGUAGES) as (keyof typeof LANGUAGES)[], {
  description: '`node`, `nodejs` and `javascript` are the same',
});

const KernelName = Type.String({
  pattern: KERNEL_NAME_PATTERN,
  description: '1–64 letters, digits, dots, hyphens or underscores; the first one a letter or digit',
});
const KERNEL = {
  kernel: optional(KernelName, {
    description:
      'A Jupyter kernel of the image, such as `python3` or `ir`, instead of `language`; the image needs python3 with jupyter_client',
  }),
};

/** An id has a `:`, so that no name is also an id. */
const ContextName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,62}$',
  description: 'A letter, then letters, digits, `_`, `.` and `-`; unique among the contexts of a sandbox',
});

export const CreateContextRequest = strictObject({
  language: Type.Optional(Language),
  ...KERNEL,
  name: optional(ContextName),
  cwd: optional(Word, { description: 'The working directory of the sandbox unless given' }),
  env: Type.Optional(
    strictRecord(VARIABLE_NAME, Word, {
      maxProperties: MAX_VARIABLES,
      description: 'Over the environment of the sandbox. Never shown again',
    }),
  ),
});
export type CreateContextRequest = Static<typeof CreateContextRequest>;

export const CodeContext = strictObject({
  id: Type.String(),
  name: nullable(Type.String()),
  language: nullable(Type.Enum(['python', 'javascript']), { description: 'Null: that of its kernel' }),
  kernel: nullable(Type.String(), { description: 'The Jupyter kernel that runs its code, if one does' }),
  cwd: nullable(Type.String(), { description: 'Null: the working directory of the sandbox' }),
  status: Type.Enum(['idle', 'busy'], { description: 'Busy: code runs in it, or waits for its turn' }),
  created_at: Timestamp,
});
export type CodeContext = Static<typeof CodeContext>;

export const RunCodeRequest = strictObject({
  code: Type.String(),
  language: Type.Optional(Language),
  ...KERNEL,
  context: optional(Type.String({ minLength: 1, maxLength: 128 }), {
    description:
      'Id or name of a context. Without one the code runs in the default context of `language`, which JSON-RPC and MCP share, or of `kernel`',
  }),
  timeout_ms: optional(Type.Integer({ minimum: 1, maximum: MAX_TIMEOUT_SECONDS * MS_PER_SECOND }), {
    description:
      'Counted from when the code begins. Then it is interrupted, and the state is kept; 24 hours unless given',
  }),
  env: Type.Optional(
    strictRecord(VARIABLE_NAME, Word, {
      maxProperties: MAX_VARIABLES,
      description: 'Over the environment of the interpreter, for this code alone; not for a `kernel`',
    }),
  ),
  print_result: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'False: the value of a last bare expression is a result and not in stdout',
    }),
  ),
});
export type RunCodeRequest = Static<typeof RunCodeRequest>;

const CodeException = strictObject({
  name: Type.String({ description: 'Such as ValueError' }),
  message: Type.String(),
  traceback: Type.String({ description: 'As it is in stderr' }),
  frames: Type.Array(
    strictObject({
      file: Type.String({ description: 'Such as `<cell 3>`: the third code that ran in the context' }),
      line: Type.Integer(),
      function: Type.String(),
      source: Type.String({ description: 'The line itself, when it is known' }),
    }),
    {
      description:
        'Where in the code that was sent, outermost first; frames of libraries are in `traceback` alone',
    },
  ),
});

/** How a run ended; in a stream the data of the `end` event. */
export const CODE_END = {
  status: Type.Enum(['success', 'error', 'timeout', 'interrupted'], {
    description:
      'An exception is `error`. After `timeout` and `interrupted` the state is kept, unless stderr says otherwise',
  }),
  result: nullable(Type.String(), {
    description:
      'The value of a last bare expression as the interpreter shows it; it is in stdout, too, unless `print_result` is false',
  }),
  exception: nullable(CodeException, { description: 'What ended the code' }),
  execution_count: nullable(Type.Integer(), {
    description: 'Which code of its interpreter this was, from 1; null when the interpreter ended',
  }),
  truncated: Type.Boolean({
    description: 'Output, or something of a result, is missing: there was too much of it',
  }),
};

export const CodeAnswer = strictObject({
  ...CODE_END,
  stdout: Type.String({
    description: `The first ${MAX_ANSWERED_OUTPUT_LENGTH} characters; stream it to have more`,
  }),
  stderr: Type.String({ description: 'Also says when the state was lost, and why' }),
  results: Type.Array(CodeRunResult, {
    description:
      'What the code showed, in its order: the value of a last expression, what it gave to `display()`, and figures',
  }),
});
export type CodeAnswer = Static<typeof CodeAnswer>;
