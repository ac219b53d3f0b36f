import type { OperationOutput } from '@svc/contract';
import type { RpcMethod } from './methods.ts';

interface LegacyLine {
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** The result as the clients of the original server read it: output as lines, and no `error` beside it. */
export function toLegacyShape(method: RpcMethod, result: unknown): unknown {
  if (method !== 'sandbox.repl.run' && method !== 'sandbox.command.run') return result;
  // The handler of the method has just returned it.
  const run = result as OperationOutput<typeof method>;
  const { output, error, ...rest } = run;
  const lines = [...toLines('stdout', output), ...toLines('stderr', error)];
  if (!('has_error' in rest)) return { ...rest, output: lines };
  const { has_error: _, ...code } = rest;
  return { ...code, output: lines };
}

function toLines(stream: LegacyLine['stream'], text: string): readonly LegacyLine[] {
  if (text === '') return [];
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  return lines.map((line) => ({ stream, text: line }));
}
