import { PlatformError } from '@svc/contract';
import type { SandboxReport } from '@svc/contract/orchestrator';

/** `reason` of a run that ended because its sandbox ran out of memory. */
export const OUT_OF_MEMORY = 'oom';

/** The error for a caller who opens a sandbox whose latest run is over, with the reason of its end. */
export function notRunning({ id, state, end }: SandboxReport, cause?: unknown): PlatformError {
  const why = end === null ? 'start it first' : end.message;
  const details = { state, ...(end === null ? {} : { reason: end.reason, ended: end.message }) };
  return new PlatformError('sandbox_not_running', `Sandbox ${id} is ${state}; ${why}`, { details, cause });
}
