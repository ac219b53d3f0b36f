import type { TSchema } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import type { Operation } from './operation.ts';
import { SandboxReference } from './sandbox-reference.ts';
import { TimeoutSeconds, Truncated } from './run-limits.ts';

const Word = Type.String({ pattern: '^[^\\u0000]*$' });

export const commandOperations = {
  'sandbox.command.run': {
    summary: 'Run a program in a running sandbox and wait for its end; no shell is involved',
    access: 'namespace',
    input: strictObject({
      ...SandboxReference,
      command: Type.String({ minLength: 1, pattern: '^[^\\u0000]*$', description: 'Looked up on PATH' }),
      args: Type.Optional(Type.Union([Type.Array(Word), Type.Null()])),
      workdir: optional(
        Type.String({ minLength: 1, maxLength: 4096, pattern: '^[^\\u0000]*$' }),
        'The working directory of the sandbox unless given',
      ),
      envs: optional(
        Type.Array(Type.String({ pattern: '^[^=\\u0000]+=[^\\u0000]*$' }), { maxItems: 4096 }),
        'Environment over that of the sandbox, each entry KEY=VALUE',
      ),
      stdin: optional(
        Type.String(),
        'What it reads from standard input, which ends after it; nothing unless given',
      ),
      timeout: TimeoutSeconds,
    }),
    output: strictObject({
      command: Type.String(),
      args: Type.Array(Type.String()),
      exit_code: Type.Integer({ description: '128 + n when signal n ended the program' }),
      success: Type.Boolean(),
      output: Type.String({ description: 'stdout' }),
      error: Type.String({ description: 'stderr' }),
      truncated: Truncated,
    }),
    errors: [
      'sandbox_not_found',
      'sandbox_not_running',
      'exec_failed',
      'exec_timeout',
      'orchestrator_unreachable',
    ],
  },
} as const satisfies Record<string, Operation>;

function optional<T extends TSchema>(schema: T, description: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], { description }));
}
