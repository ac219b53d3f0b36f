import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import { DEFAULT_NAMESPACE } from '@svc/contract';
import { isTooLong, shorten } from './toolbox/bounded-text.ts';
import { linkOf } from './toolbox/file-tools.ts';
import type { FailureData } from './next-step.ts';
import { ToolContext, type ToolCaller, type Workbench } from './toolbox/tool-context.ts';

const STREAMS = ['output', 'error'] as const;
interface Failure {
  readonly message: string;
  readonly data: FailureData;
}

const NOT_KEPT = 'have the command write to a file, and read that with sandbox_read_file';

/**
 * Truncates the output of code or a command to what a model is shown, with a link to the full output in a file of the
 * sandbox. Results of other methods are unchanged.
 */
export async function boundStreams(
  bench: Workbench,
  call: ToolCaller,
  input: Readonly<Record<string, unknown>>,
  output: unknown,
): Promise<{ readonly output: unknown; readonly links: readonly ContentBlock[] }> {
  if (typeof output !== 'object' || output === null) return { output, links: [] };
  const result: Record<string, unknown> = { ...output };
  const links: ContentBlock[] = [];
  const { sandbox, namespace } = input;
  const context = new ToolContext(bench, call, typeof namespace === 'string' ? namespace : DEFAULT_NAMESPACE);
  for (const stream of STREAMS) {
    const text = result[stream];
    if (typeof text !== 'string' || !isTooLong(text)) continue;
    // Methods with output have a sandbox parameter.
    const kept = await context.keep(sandbox as string, text);
    const where =
      'path' in kept
        ? `all of it is in ${kept.path} of the sandbox: search it with sandbox_run_command, or read it with sandbox_read_file`
        : `they could not be kept (${kept.failure}): ${NOT_KEPT}`;
    result[stream] = shorten(text, where);
    result['truncated'] = true;
    if ('path' in kept) {
      const bytes = Buffer.byteLength(text);
      links.push(linkOf(context, { sandbox: sandbox as string }, kept.path, bytes, 'text/plain'));
    }
  }
  return { output: result, links };
}

/** Includes the output of a command that timed out. */
export function boundFailure({ message, data }: Failure): Failure {
  if (data === null) return { message, data };
  const bounded: Record<string, unknown> = { ...data };
  for (const stream of STREAMS) {
    const text = bounded[stream];
    if (typeof text === 'string') bounded[stream] = shorten(text, NOT_KEPT);
  }
  return { message, data: bounded };
}
