import type { Database } from './database.ts';
import { removeIdentityProvider } from './identity-providers.ts';

/**
 * Marks an organization as deleted and deletes everything of it that needs no cleanup by the engine. Its slug can be
 * used again; the replacement slug is not a legal namespace. Call it in a transaction, after `desired` of its
 * sandboxes and volumes was set to removed.
 */
export async function deleteOrganization(transaction: Database, organizationId: string): Promise<void> {
  const now = new Date().toISOString();
  await transaction
    .updateTable('organizations')
    .set({ deleted_at: now, updated_at: now, slug: `~${organizationId}` })
    .where('id', '=', organizationId)
    .execute();
  await transaction
    .updateTable('snapshots')
    .set({ removed_at: now })
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null)
    .execute();
  await forgetAccess(transaction, organizationId, now);
}

async function forgetAccess(transaction: Database, organizationId: string, now: string): Promise<void> {
  await transaction
    .updateTable('api_keys')
    .set({ revoked_at: now })
    .where('organization_id', '=', organizationId)
    .where('revoked_at', 'is', null)
    .execute();
  await removeIdentityProvider(transaction, organizationId);
  for (const table of ['registries', 'secrets', 'webhooks', 'invites', 'members'] as const) {
    await transaction.deleteFrom(table).where('organization_id', '=', organizationId).execute();
  }
}
