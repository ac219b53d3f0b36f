import {
  KERNEL_NAME_PATTERN,
  KERNEL_PREFIX,
  LANGUAGES,
  PlatformError,
  timeoutMsOf,
  type CodeRunResult,
} from '@svc/contract';
import { languageOfKernel, type Language } from '../../code/languages.ts';
import type { CodeRunner } from '../../code/code-runner.ts';
import type { Handlers } from '../../dispatch/dispatch.ts';
import type { Database } from '../../store/database.ts';
import { requireRunning, whileRunning } from '../sandboxes/running-sandbox.ts';

/** Ignores events, because the result holds all of them. */
const IGNORED_EVENTS = {
  stdout: () => undefined,
  stderr: () => undefined,
  note: () => undefined,
  ended: () => undefined,
};

export function codeHandlers(database: Database, codeRunner: CodeRunner): Pick<Handlers, 'sandbox.repl.run'> {
  return {
    'sandbox.repl.run': async (
      { sandbox, language, code, timeout, results: isAsked },
      { namespace, signal },
    ) => {
      const interpreter = interpreterOf(language);
      const { id } = await requireRunning(database, namespace, sandbox);
      const timeoutMs = timeoutMsOf(timeout);
      const results: CodeRunResult[] = [];
      const listener = { ...IGNORED_EVENTS, result: (result: CodeRunResult) => void results.push(result) };
      const request = { sandboxId: id, language: interpreter, code, timeoutMs, listener };
      const result = await whileRunning(sandbox, () => codeRunner.run(request, signal));
      return {
        status: result.status,
        language,
        output: result.output,
        error: result.error,
        has_error: result.status !== 'success',
        ...(result.truncated ? { truncated: true } : {}),
        ...(isAsked === true ? { results } : {}),
      };
    },
  };
}

const KERNEL_NAME = new RegExp(KERNEL_NAME_PATTERN);

function interpreterOf(language: string): Language {
  const name = language.toLowerCase();
  if (Object.hasOwn(LANGUAGES, name)) return LANGUAGES[name as keyof typeof LANGUAGES];
  const kernel = language.slice(KERNEL_PREFIX.length);
  if (name.startsWith(KERNEL_PREFIX) && KERNEL_NAME.test(kernel)) return languageOfKernel(kernel);
  const reason = `must be one of ${Object.keys(LANGUAGES).join(', ')}, or ${KERNEL_PREFIX} and the name of a Jupyter kernel of the image`;
  throw new PlatformError('invalid_request', `Invalid params: language ${reason}`, {
    details: { field: 'language', reason },
  });
}
