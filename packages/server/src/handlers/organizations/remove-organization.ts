import { PlatformError } from '@svc/contract';
import { requestRemoval } from '../../sandboxes/desired-state.ts';
import { deleteOrganization } from '../../store/delete-organization.ts';
import { listSandboxes } from '../../store/sandboxes.ts';
import { closeUsage } from '../../store/volume-usage.ts';
import { listVolumes, updateVolume } from '../../store/volumes.ts';
import { eventCaller } from '../../dispatch/event-caller.ts';
import type { Change, RestCall } from '../../dispatch/rest-call.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';

/** What carries out the removal of sandboxes, volumes and snapshots. */
export interface RemovalParts {
  readonly convergence: Pick<Convergence, 'convergeSoon'>;
  readonly volumeReconciler: { wake(): void };
  readonly snapshotWorker: { wake(): void };
}

/** Hides the organization at once and wants all that it has removed, in one transaction; reconcilers do the rest. */
export async function removeOrganization(
  parts: RemovalParts,
  confirm: string,
  call: RestCall,
): Promise<{ message: string }> {
  const { id, slug } = call.organization;
  if (confirm !== slug) {
    const message =
      'confirm must be the slug of the organization, which is to be deleted with all that it has';
    throw new PlatformError('invalid_request', message, { details: { field: 'confirm' } });
  }
  const answer = () => ({ message: `Organization ${slug} is deleted; what it had is being removed` });
  const sandboxIds = await call.commit(async (change) => {
    const removed = await removeSandboxes(change, call);
    await removeVolumes(change, id);
    await change.record({ type: 'org_deleted', category: 'org', payload: { slug } });
    await deleteOrganization(change.db, id);
    return removed;
  }, answer);
  for (const sandboxId of sandboxIds) parts.convergence.convergeSoon(sandboxId);
  parts.volumeReconciler.wake();
  parts.snapshotWorker.wake();
  return answer();
}

/** Ends their runs now, so that the time of the clean-up is not billed. */
async function removeSandboxes({ db }: Change, call: RestCall): Promise<readonly string[]> {
  const sandboxes = await listSandboxes(db, { organizationId: call.organization.id });
  for (const sandbox of sandboxes) await requestRemoval(db, sandbox, eventCaller(call));
  return sandboxes.map(({ id }) => id);
}

async function removeVolumes({ db, record }: Change, organizationId: string): Promise<void> {
  const now = new Date().toISOString();
  const volumes = await listVolumes(db, organizationId);
  for (const { id, name } of volumes.filter(({ status }) => status === 'active')) {
    await closeUsage(db, id, now);
    await record({ type: 'volume_deleted', category: 'volume', payload: { volume_id: id, name } });
    await updateVolume(db, id, { status: 'deleting' });
  }
}
