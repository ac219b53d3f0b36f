import { LANGUAGES, PlatformError, timeoutMsOf, type CodeRunResult } from '@svc/contract';
import type { CodeRunner } from '../../code/code-runner.ts';
import type { Handlers } from '../../dispatch/dispatch.ts';
import type { Database } from '../../store/database.ts';
import { requireRunning, whileRunning } from '../sandboxes/running-sandbox.ts';

/** Hears nothing of what is in the result anyway. */
const DEAF = {
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
      const listener = { ...DEAF, result: (result: CodeRunResult) => void results.push(result) };
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

function interpreterOf(language: string): 'python' | 'node' {
  const name = language.toLowerCase();
  if (Object.hasOwn(LANGUAGES, name)) return LANGUAGES[name as keyof typeof LANGUAGES];
  const reason = `must be one of ${Object.keys(LANGUAGES).join(', ')}`;
  throw new PlatformError('invalid_request', `Invalid params: language ${reason}`, {
    details: { field: 'language', reason },
  });
}
