import { SandboxReference } from '../operations/sandbox-reference.ts';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { optional, READS, type ToolSchema } from './tool-schema.ts';

const MAX_LINES = 1000;

const Pattern = Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]+$' });
const Start = optional(Pattern, 'Where to look; the working directory of the sandbox unless given');
const Limit = optional(Type.Integer({ minimum: 1, maximum: MAX_LINES }), 'Lines at most, 100 unless given');
const Found = strictObject({ shown: Type.Integer(), has_more: Type.Boolean() });

export const searchTools = {
  sandbox_grep: {
    title: 'Search in files',
    description:
      'Search the files below a folder of a running sandbox, or one file, with an extended regular expression. Shows ' +
      'path:line:text of each match. Uses the grep of the image.',
    hints: READS,
    input: strictObject({
      ...SandboxReference,
      pattern: Type.String({ ...Pattern, description: 'As of grep -E' }),
      path: Start,
      ignore_case: optional(Type.Boolean(), 'Upper and lower case are the same'),
      limit: Limit,
    }),
    isText: true,
    output: Found,
  },
  sandbox_glob: {
    title: 'Find files by name',
    description:
      'List the files and folders below a folder of a running sandbox whose names match, at any depth. Uses the find of the image.',
    hints: READS,
    input: strictObject({
      ...SandboxReference,
      pattern: Type.String({
        ...Pattern,
        description:
          'Such as *.py; with a slash, the path from the folder on, where * matches slashes too: src/*.ts',
      }),
      path: Start,
      limit: Limit,
    }),
    isText: true,
    output: Found,
  },
} as const satisfies Record<string, ToolSchema>;
