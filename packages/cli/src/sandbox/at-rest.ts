import type { CallOptions, Sandbox } from '@svc/sdk';

/** States of a sandbox that does not run and is not about to start. */
export const AT_REST: ReadonlySet<Sandbox['status']> = new Set(['created', 'stopped', 'failed']);

/** Stops a sandbox; one that ends before the stop arrives is no error, although the server refuses the stop. */
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
