import { PlatformError } from '@svc/contract';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { deadlineOf } from './deadlines.ts';

/** Transient failures, after which the work is tried again. `name_already_exists`: a create that was given up is still being undone. */
export function mayPass(error: unknown): boolean {
  return (
    PlatformError.is(error, 'orchestrator_unreachable') ||
    PlatformError.is(error, 'insufficient_capacity') ||
    PlatformError.is(error, 'name_already_exists') ||
    PlatformError.is(error, 'unavailable') ||
    isTimeout(error)
  );
}

export function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError');
}

export function notInTime(verb: string, timeoutMs: number, cause: unknown): PlatformError {
  const message = `the engine did not ${verb} it within ${timeoutMs / 1000} s; try again`;
  return new PlatformError('unavailable', message, { cause });
}

/** The message of a start that timed out: why it waited, when that is known. */
export function tooLate(record: SandboxRecord, cause: unknown): PlatformError {
  if (PlatformError.is(cause, 'insufficient_capacity')) return cause;
  return notInTime('start', deadlineOf(record) - Date.parse(record.stateSince), cause);
}
