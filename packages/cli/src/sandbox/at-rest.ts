import type { CallOptions, Sandbox } from '@svc/sdk';

/** Of a sandbox that does not run, and will not by itself. */
export const AT_REST: ReadonlySet<Sandbox['status']> = new Set(['created', 'stopped', 'failed']);

/** One that ends by itself before the stop arrives is fine: the server would refuse to stop what does not run. */
export async function stopUnlessAtRest(
  sandbox: Pick<Sandbox, 'status' | 'stop'> & { refresh(): Promise<unknown> },
  options: CallOptions = {},
): Promise<void> {
  if (AT_REST.has(sandbox.status)) return;
  try {
    await sandbox.stop(options);
  } catch (error) {
    await sandbox.refresh();
    if (!AT_REST.has(sandbox.status)) throw error;
  }
}
