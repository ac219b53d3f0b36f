import type { Database } from './database.ts';

/**
 * Makes this server the one that works on the sandbox, for so long. One that has it already keeps it for longer.
 * @returns false while another server has it
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
