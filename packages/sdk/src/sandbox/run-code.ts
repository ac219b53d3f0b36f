import type { CallOptions } from '../client/call-budget.ts';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import type { RestCallOutput } from '../client/rest-call.ts';
import { errorOfEnvelope } from '../svc-error.ts';
import { CodeRunResult } from './code-run-result.ts';
import type { CodeRuns, RunHandler } from './code-runs.ts';

/** Of each stream; what is beyond goes to the listeners only. */
const MAX_KEPT_LENGTH = 10 * 1024 * 1024;

export interface RunCodeOptions extends Pick<CallOptions, 'signal'> {
  /** Which default context it runs in: one per language, there as long as the sandbox runs. `python` without `kernel` and `context`. */
  readonly language?: 'python' | 'javascript';
  /** A Jupyter kernel of the image, such as `ir`, instead of `language`: in a default context of its own. */
  readonly kernel?: string;
  /** One that was made with `contexts.create`, or its id or name. */
  readonly context?: { readonly id: string } | string;
  /** What it prints, as soon as it does. */
  readonly onStdout?: (text: string) => void;
  readonly onStderr?: (text: string) => void;
  /** What it shows, as soon as it does: charts, tables, the value of a last expression. */
  readonly onResult?: (result: CodeRunResult) => void;
  /** What ended the code, if an exception did. */
  readonly onError?: (exception: CodeException) => void;
  /** After this long the code is interrupted, and `status` is `timeout`. 24 hours unless given. */
  readonly timeoutMs?: number;
  /** Over the environment of the interpreter, for this code alone; not for a kernel. */
  readonly env?: Readonly<Record<string, string>>;
  /** False: the value of a last bare expression is in `result` and `results` alone, and not in `output`. */
  readonly printResult?: boolean;
}

const OPTIONS: OptionNames<RunCodeOptions> = {
  language: true,
  kernel: true,
  context: true,
  onStdout: true,
  onStderr: true,
  onResult: true,
  onError: true,
  timeoutMs: true,
  env: true,
  printResult: true,
  signal: true,
};

type Answer = RestCallOutput<'code.run'>;

/** An exception as data: its name, message and traceback, and where in the code it came from. */
export type CodeException = NonNullable<Answer['exception']>;

/** What code did. An exception in it is a result like any other. */
export interface CodeResult {
  /** After `timeout` and `interrupted` the state is kept, unless `error` says otherwise. */
  readonly status: Answer['status'];
  /** stdout, and the value of a last bare expression. */
  readonly output: string;
  /** stderr, and the traceback; also says when the state was lost. */
  readonly error: string;
  /** The same, by the name that the output of a process has. */
  readonly stderr: string;
  /** The value of a last bare expression alone, as the interpreter shows it. */
  readonly result: string | null;
  /** What the code showed, in its order: the value of a last expression, what was given to `display()`, figures. */
  readonly results: readonly CodeRunResult[];
  /** What ended the code. */
  readonly exception: CodeException | null;
  /** Output, or something of a result, is missing: there was too much of it. */
  readonly isTruncated: boolean;
}

/** A signal that aborts interrupts the code. @throws SvcError `context_not_found`, `context_lost`, `exec_failed` */
export async function runCode(runs: CodeRuns, code: string, options: RunCodeOptions): Promise<CodeResult> {
  requireKnownOptions(options, OPTIONS);
  const { kernel, context, timeoutMs, env, printResult, signal } = options;
  const isChosen = kernel !== undefined || context !== undefined;
  const { language = isChosen ? undefined : 'python' } = options;
  const body = {
    code,
    ...(language === undefined ? {} : { language }),
    ...(kernel === undefined ? {} : { kernel }),
    ...(context === undefined ? {} : { context: typeof context === 'string' ? context : context.id }),
    ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(printResult === undefined ? {} : { print_result: printResult }),
  };
  return await runs.run(body, collector(options), signal);
}

/** Gives the result with the last event. */
function collector(options: RunCodeOptions): RunHandler<CodeResult> {
  const kept = { stdout: '', stderr: '' };
  const listeners = { stdout: options.onStdout, stderr: options.onStderr };
  const results: CodeRunResult[] = [];
  let isCut = false;
  return (event, data) => {
    if (event === 'error') throw errorOfEnvelope(data);
    if (event === 'end') {
      const end = data as Pick<Answer, EndField>;
      if (end.exception !== null) options.onError?.(end.exception);
      return { ...toResult(end, kept, isCut), results };
    }
    if (event === 'result') {
      const result = new CodeRunResult(data as Answer['results'][number]);
      results.push(result);
      options.onResult?.(result);
    }
    if (event !== 'stdout' && event !== 'stderr') return undefined;
    const { text } = data as { readonly text: string };
    listeners[event]?.(text);
    if (kept[event].length + text.length > MAX_KEPT_LENGTH) isCut = true;
    kept[event] += text.slice(0, MAX_KEPT_LENGTH - kept[event].length);
    return undefined;
  };
}

type EndField = 'status' | 'result' | 'exception' | 'truncated';

function toResult(
  { status, result, exception, truncated }: Pick<Answer, EndField>,
  { stdout, stderr }: { readonly stdout: string; readonly stderr: string },
  isCut: boolean,
): Omit<CodeResult, 'results'> {
  return {
    status,
    output: stdout,
    error: stderr,
    stderr,
    result,
    exception,
    isTruncated: truncated || isCut,
  };
}
