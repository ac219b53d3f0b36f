import { ChannelError, ExecFailed, PlatformError } from '@svc/contract';

/** svc-init answers at once; a longer wait means that the sandbox was stopped, or ended. */
export const ANSWER_MS = 10_000;

/** Bounds a call to the sandbox by the time that svc-init needs at most. */
export function boundedBy(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
}

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
}

/** Translates a failed call to the sandbox about a process into an error for the caller. */
export function explainFailure(error: unknown, about: { readonly process: string }): unknown {
  if (error instanceof ExecFailed) return explainStart(error, about.process);
  if (error instanceof RangeError) {
    const message = 'program, arguments and environment are together larger than 4 MiB; use a file';
    return new PlatformError('payload_too_large', message, { cause: error });
  }
  if (isTimeout(error)) {
    const message = 'the sandbox does not answer on its channel; stop and start it';
    return new PlatformError('unavailable', message, { cause: error });
  }
  if (!(error instanceof ChannelError)) return error;
  if (error.kind !== 'refused') {
    const message = 'the connection to the sandbox broke; look at the process before you repeat the call';
    return new PlatformError('unavailable', message, { cause: error });
  }
  if (error.refusal === 'invalid_session') return notNow(about.process, error);
  const message =
    error.refusal === 'resource_limit'
      ? 'the process has not read what it was sent before; try again'
      : `the sandbox refused: ${error.message}`;
  return new PlatformError('unavailable', message, { cause: error });
}

function explainStart(error: ExecFailed, command: string): PlatformError {
  const message =
    error.kind === 'not_found'
      ? notFoundMessage(command)
      : `'${command}' could not be started: ${error.message}`;
  const details = { reason: error.kind, errno: error.errnoName, stage: error.stage };
  return new PlatformError('exec_failed', message, { details, cause: error });
}

/**
 * The message for a missing program. A command line that was meant for a shell is recognized by its spaces, which names of programs
 * hardly have.
 */
export function notFoundMessage(command: string): string {
  if (!/\s/.test(command.trim()))
    return `'${command}' not found in the sandbox; give a path or a program that is on its PATH`;
  const line = JSON.stringify(command);
  return `'${command}' not found in the sandbox: no shell is involved; give the program alone and its arguments as args, or "sh" with args ["-c", ${line}]`;
}

/** The process exists, but the request does not fit its state. */
function notNow(process: string, error: ChannelError): PlatformError {
  const message = `process ${process} cannot do this: ${error.message}; get it to see where it stands`;
  return new PlatformError('invalid_state_transition', message, { cause: error });
}
