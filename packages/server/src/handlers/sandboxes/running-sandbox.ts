import { PlatformError } from '@svc/contract';
import { OUT_OF_MEMORY } from '../../orchestrator/not-running.ts';
import type { Database } from '../../store/database.ts';
import { findSandbox, type SandboxRecord } from '../../store/sandboxes.ts';

/** @throws PlatformError `sandbox_not_found`, or `sandbox_not_running` when its desired state is not running. */
export async function requireRunning(
  database: Database,
  namespace: string,
  name: string,
): Promise<SandboxRecord> {
  const record = await findSandbox(database, namespace, name);
  if (record === undefined) throw notFound(name);
  if (record.desired === 'running' || record.desired === 'restarted') return record;
  throw notRunning(name, record.observed, record.failureCode, record.failureMessage);
}

/**
 * Does work that needs the running sandbox. If it is stopped meanwhile, the error has the name that the caller used, not the
 * orchestrator's id.
 */
export async function whileRunning<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isGone = PlatformError.is(error, 'sandbox_not_found');
    if (!isGone && !PlatformError.is(error, 'sandbox_not_running')) throw error;
    const { state, reason, ended, output, error: stderr, truncated } = error.details ?? {};
    const known = notRunning(
      name,
      textOr(state, 'stopped'),
      textOr(reason, null),
      textOr(ended, null),
      error,
    );
    if (output === undefined) throw known;
    // The output of a command before its sandbox ended.
    const said = { output, error: stderr, ...(truncated === true ? { truncated } : {}) };
    throw new PlatformError(known.code, known.message, {
      details: { ...known.details, ...said },
      cause: error,
    });
  }
}

export function notFound(name: string): PlatformError {
  return new PlatformError('sandbox_not_found', `Sandbox '${name}' not found in configuration`, {
    details: { sandbox: name },
  });
}

function notRunning(
  name: string,
  state: string,
  reason: string | null,
  ended: string | null,
  cause?: unknown,
): PlatformError {
  // Drops the advice for callers of REST, whose operations have other names; that it was stopped follows from the state.
  const why =
    ended === null || reason === 'stopped' ? '' : ` (${ended.replace(/; raise resources\..*$/, '')})`;
  const how = reason === OUT_OF_MEMORY ? ', config.image and a larger config.memory' : '';
  const message = `Sandbox '${name}' is ${state}${why}; start it with sandbox.start${how}`;
  const details = { state, ...(reason === null ? {} : { reason }) };
  return new PlatformError('sandbox_not_running', message, { details, cause });
}

function textOr<T>(value: unknown, otherwise: T): string | T {
  return typeof value === 'string' ? value : otherwise;
}
