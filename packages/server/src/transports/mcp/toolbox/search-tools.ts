import { PlatformError } from '@svc/contract';
import type { WorkToolInput, WorkToolOutput } from '@svc/contract/mcp';
import type { ToolAnswer, WorkToolHandlers } from './tool-answer.ts';
import type { ToolContext } from './tool-context.ts';

const DEFAULT_LINES = 100;
const MAX_LINE_LENGTH = 500;
const TIMEOUT_SECONDS = 30;
const NO_MATCH = 1;

type SearchTools = Pick<WorkToolHandlers, 'sandbox_grep' | 'sandbox_glob'>;
type Answer = ToolAnswer<WorkToolOutput<'sandbox_grep'>>;

export function searchTools(): SearchTools {
  return {
    sandbox_grep: async (input, context) => {
      const limit = input.limit ?? DEFAULT_LINES;
      const cased = input.ignore_case === true ? ['-i'] : [];
      // One more per file than is shown, to detect further matches.
      const bounds = ['-m', String(limit + 1)];
      const words = ['-rnHE', ...cased, ...bounds, '-e', input.pattern, '--', startOf(input)];
      const lines = await search(context, input.sandbox, 'grep', words);
      return show(lines.filter(isText), limit);
    },
    sandbox_glob: async (input, context) => {
      const lines = await search(context, input.sandbox, 'find', [startOf(input), ...testOf(input)]);
      return show(lines.toSorted(), input.limit ?? DEFAULT_LINES);
    },
  };
}

/** The start folder: never parsed as an option, and without a trailing slash, which `find` would print. */
function startOf({ path }: { readonly path?: string | null }): string {
  const start = (path ?? '.').replace(/\/+$/, '') || '/';
  return /^[./]/.test(start) ? start : `./${start}`;
}

function testOf(input: WorkToolInput<'sandbox_glob'>): readonly string[] {
  const { pattern } = input;
  if (!pattern.includes('/')) return ['-name', pattern];
  const folder = startOf(input)
    .replace(/^\/$/, '')
    .replaceAll(/[\\*?[]/g, String.raw`\$&`);
  // In `find`, a star matches slashes, so `**/`, which may match no folder at all, becomes a star.
  return ['-path', `${folder}/${pattern.replace(/^\.?\//, '').replaceAll('**/', '*')}`];
}

/** @returns the output of the program, by line */
async function search(
  context: ToolContext,
  sandbox: string,
  command: 'grep' | 'find',
  args: readonly string[],
): Promise<readonly string[]> {
  try {
    const result = await context.run({ sandbox, command, args: [...args], timeout: TIMEOUT_SECONDS });
    const { exit_code: code, output, error } = result;
    // Both programs report unreadable folders and continue; the matches are complete otherwise.
    if (output === '' && error !== '' && (command === 'find' || code > NO_MATCH))
      throw new PlatformError('exec_failed', error.trimEnd(), { details: { exit_code: code } });
    return output.split('\n').slice(0, -1);
  } catch (error) {
    if (!PlatformError.is(error, 'exec_failed') || error.details?.['reason'] !== 'not_found') throw error;
    const message = `the image has no ${command}; search with sandbox_run_code`;
    throw new PlatformError('exec_failed', message, { details: error.details, cause: error });
  }
}

/** Some builds of grep print lines of binary files. */
function isText(line: string): boolean {
  return !line.includes('\0') && !line.includes('\uFFFD');
}

function show(lines: readonly string[], limit: number): Answer {
  const shown = lines.slice(0, limit).map((line) => line.slice(0, MAX_LINE_LENGTH).toWellFormed());
  const hasMore = lines.length > limit;
  const note = hasMore ? ['[there is more: look in a smaller place, or give a larger limit]'] : [];
  return {
    structured: { shown: shown.length, has_more: hasMore },
    text: shown.length === 0 ? '[nothing was found]' : [...shown, ...note].join('\n'),
  };
}
