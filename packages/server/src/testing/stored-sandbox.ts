import { randomUUID } from 'node:crypto';
import type { SandboxSpec } from '@svc/contract';
import type { PortMapping } from '../store/port-mapping.ts';
import type { Database } from '../store/database.ts';
import { insertSandbox, removeSandbox, type NewSandbox } from '../store/new-sandbox.ts';
import { ensureOrganization } from '../store/organizations.ts';
import { findSandbox, type SandboxRecord } from '../store/sandboxes.ts';

/** Adds a sandbox with the desired state running, as a start does, replacing the one that has its name. */
export async function addSandbox(
  db: Database,
  sandbox: Partial<NewSandbox> & {
    readonly namespace: string;
    readonly name: string;
    readonly spec: SandboxSpec;
    readonly ports: readonly PortMapping[];
  },
): Promise<SandboxRecord> {
  const { namespace, name } = sandbox;
  return await db.transaction().execute(async (transaction) => {
    const organizationId = await ensureOrganization(transaction, namespace);
    const before = await findSandbox(transaction, namespace, name);
    if (before !== undefined) await removeSandbox(transaction, before, null);
    return await insertSandbox(transaction, {
      id: randomUUID(),
      organizationId,
      slug: null,
      isolation: null,
      snapshotId: null,
      secrets: null,
      volumes: [],
      isWantedRunning: true,
      requestedBy: null,
      ...sandbox,
    });
  });
}
