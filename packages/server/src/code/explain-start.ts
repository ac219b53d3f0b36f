import { ChannelError, ExecFailed, PlatformError } from '@svc/contract';
import { InterpreterFailed } from './interpreter.ts';
import type { InterpreterProgram } from './languages.ts';

/** A kernel imports much before it answers. */
export const START_TIMEOUT_MS = 60_000;

/** Why an interpreter did not start, and what the caller can do about it. */
export function explainStart({ program, title }: InterpreterProgram, error: unknown): unknown {
  if (error instanceof ExecFailed && error.kind === 'not_found') {
    const message = `'${program}' is not in the sandbox; use an image that has it on its PATH`;
    return new PlatformError('exec_failed', message, {
      details: { program, reason: error.kind },
      cause: error,
    });
  }
  if (error instanceof ExecFailed || error instanceof InterpreterFailed) {
    const message = `${title} of this sandbox could not be started: ${error.message}`;
    return new PlatformError('exec_failed', message, { details: { program }, cause: error });
  }
  if (error instanceof ChannelError) {
    const message = `the connection to the sandbox broke while ${title} was starting; try again`;
    return new PlatformError('unavailable', message, { cause: error });
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    const message = `${title} of this sandbox did not start within ${START_TIMEOUT_MS / 1000} s`;
    return new PlatformError('exec_failed', message, { details: { program }, cause: error });
  }
  return error;
}
