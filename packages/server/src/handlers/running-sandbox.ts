import { PlatformError } from '@svc/contract';
import { notFound } from '../lifecycle/lifecycle.ts';
import type { Database } from '../store/database.ts';
import { findSandbox, type SandboxRecord } from '../store/sandboxes.ts';

/** @throws PlatformError `sandbox_not_found`, or `sandbox_not_running` when nobody wants it to run. */
export async function requireRunning(
  database: Database,
  namespace: string,
  name: string,
): Promise<SandboxRecord> {
  const record = await findSandbox(database, namespace, name);
  if (record === undefined) throw notFound(name);
  if (record.desired === 'running' || record.desired === 'restarted') return record;
  const why = record.failureMessage === null ? '' : ` (${record.failureMessage})`;
  throw notRunning(name, record.observed, why);
}

/**
 * Does what needs the sandbox. One that is stopped meanwhile is called by the name that the caller knows it by, not by the
 * orchestrator's.
 */
export async function whileRunning<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isGone = PlatformError.is(error, 'sandbox_not_found');
    if (!isGone && !PlatformError.is(error, 'sandbox_not_running')) throw error;
    const state = error.details?.['state'];
    throw notRunning(name, typeof state === 'string' ? state : 'stopped', '', error);
  }
}

function notRunning(name: string, state: string, why: string, cause?: unknown): PlatformError {
  const message = `Sandbox '${name}' is ${state}${why}; start it with sandbox.start`;
  return new PlatformError('sandbox_not_running', message, { details: { state }, cause });
}
