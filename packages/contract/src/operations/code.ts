import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';
import { CodeRunResult } from './code-results.ts';
import type { Operation } from './operation.ts';
import { SandboxReference } from './sandbox-reference.ts';
import { TimeoutSeconds, Truncated } from './run-limits.ts';

/** The interpreters that keep their state, by every name callers use for them. Compare in lower case. */
export const LANGUAGES = {
  python: 'python',
  node: 'node',
  nodejs: 'node',
  javascript: 'node',
} as const;

/** Stands before the name of a Jupyter kernel where a language is asked for. */
export const KERNEL_PREFIX = 'kernel:';
/** The pattern of a kernel's name, as `jupyter kernelspec list` prints it. */
export const KERNEL_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$';

export const codeOperations = {
  'sandbox.repl.run': {
    summary: 'Run code in the persistent interpreter of a running sandbox',
    access: 'namespace',
    input: strictObject({
      ...SandboxReference,
      language: Type.String({
        description: `One of ${Object.keys(LANGUAGES).join(', ')}, or ${KERNEL_PREFIX}NAME for a Jupyter kernel of the image, such as ${KERNEL_PREFIX}ir`,
      }),
      code: Type.String(),
      timeout: TimeoutSeconds,
      results: Type.Optional(
        Type.Union([Type.Boolean(), Type.Null()], {
          description: 'Whether the answer has what the code showed as `results`, too: charts, tables, HTML',
        }),
      ),
    }),
    output: strictObject({
      status: Type.Enum(['success', 'error', 'timeout']),
      language: Type.String({ description: 'As it was sent' }),
      output: Type.String({ description: 'stdout and the value of a last bare expression' }),
      error: Type.String({ description: 'stderr and the traceback' }),
      has_error: Type.Boolean(),
      truncated: Truncated,
      results: Type.Optional(
        Type.Array(CodeRunResult, { description: 'In their order; absent unless asked for' }),
      ),
    }),
    errors: ['sandbox_not_found', 'sandbox_not_running', 'exec_failed', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, Operation>;
