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
  const message = `Sandbox '${name}' is ${record.observed}${why}; start it with sandbox.start`;
  throw new PlatformError('sandbox_not_running', message, { details: { state: record.observed } });
}
