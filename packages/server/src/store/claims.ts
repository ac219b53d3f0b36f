import type { Database } from './database.ts';

/**
 * Takes a lease on the sandbox, or extends the lease that this server already holds.
 * @returns false while another server holds it
 */
export async function claimSandbox(
  db: Database,
  id: string,
  server: string,
  leaseMs: number,
): Promise<boolean> {
  const now = Date.now();
  const claimed = await db
    .updateTable('sandboxes')
    .set({ claimed_by: server, claimed_until: new Date(now + leaseMs).toISOString() })
    .where('id', '=', id)
    .where((build) =>
      build.or([
        build('claimed_by', 'is', null),
        build('claimed_by', '=', server),
        build('claimed_until', '<', new Date(now).toISOString()),
      ]),
    )
    .returning('id')
    .executeTakeFirst();
  return claimed !== undefined;
}

export async function releaseSandbox(db: Database, id: string, server: string): Promise<void> {
  await db
    .updateTable('sandboxes')
    .set({ claimed_by: null, claimed_until: null })
    .where('id', '=', id)
    .where('claimed_by', '=', server)
    .execute();
}
