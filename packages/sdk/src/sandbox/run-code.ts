import type { OperationOutput } from '@svc/contract';
import type { CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';

/** How long the answer may take beyond the time that the code was given. */
const GRACE_MS = 10_000;

export interface RunCodeOptions extends CallOptions {
  readonly language: 'python' | 'javascript';
  /** After this long the code is interrupted, and `status` is `timeout`. 24 hours unless given. */
  readonly timeoutMs?: number;
}

/** What code did. An exception in it is a result like any other. */
export interface CodeResult {
  readonly status: 'success' | 'error' | 'timeout';
  /** stdout, and the value of a last bare expression. */
  readonly output: string;
  /** stderr, and the traceback. */
  readonly error: string;
  readonly isTruncated: boolean;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** In the interpreter of this language that the sandbox keeps: what one call defines, the next one knows. */
export async function runCode(
  client: Client,
  sandbox: { readonly name: string; readonly namespace: string },
  code: string,
  options: RunCodeOptions,
): Promise<CodeResult> {
  const { language, timeoutMs, signal } = options;
  const params = {
    sandbox: sandbox.name,
    namespace: sandbox.namespace,
    language,
    code,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs / 1000 }),
  };
  const call = { timeoutMs: (timeoutMs ?? DAY_MS) + GRACE_MS, ...(signal === undefined ? {} : { signal }) };
  const result = (await client.rpc('sandbox.repl.run', params, call)) as OperationOutput<'sandbox.repl.run'>;
  const { status, output, error, truncated = false } = result;
  return { status, output, error, isTruncated: truncated };
}
