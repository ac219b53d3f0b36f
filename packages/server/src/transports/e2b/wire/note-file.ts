import type { SandboxCall } from './admit-sandbox.ts';
import type { E2bParts } from './e2b-parts.ts';

type FileChange =
  | { readonly type: 'file_written'; readonly path: string; readonly bytes: number }
  | { readonly type: 'folder_created'; readonly path: string }
  | { readonly type: 'file_moved'; readonly from: string; readonly to: string }
  | { readonly type: 'file_removed'; readonly path: string; readonly recursive: boolean };

/** Records a change of files with the event that it has over REST. Resolves after fsync. */
export async function noteFile(
  { events }: Pick<E2bParts, 'events'>,
  { sandbox, authority, call }: SandboxCall,
  { type, ...change }: FileChange,
): Promise<void> {
  await events.append({
    organizationId: authority.organization.id,
    type,
    category: 'file',
    actor: authority.actor,
    payload: { sandbox_id: sandbox.id, ...change },
    requestId: call.requestId,
    sourceAddress: call.sourceAddress,
  });
}
