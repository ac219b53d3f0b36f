import { PlatformError, type ErrorCode } from '@svc/contract';
import type { EventType } from '@svc/contract/rest';
import {
  announceFileChange,
  endFileChange,
  extendFileChange,
  FILE_CHANGE_CHECK_MS,
  withUnknownEnd,
} from '../../store/file-changes.ts';
import type { RecordedEvent, RestCall } from '../../dispatch/rest-call.ts';
import type { Database } from '../../store/database.ts';

/** After these errors nothing was changed. After others the outcome is unknown. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'invalid_request',
  'invalid_volume_path',
  'volume_not_found',
  'volume_file_not_found',
  'name_already_exists',
  'disk_full',
  'insufficient_storage',
]);

/**
 * Changes files of a volume and records an event. Engine and store share no transaction, so the intent is stored first: if engine or
 * server is killed in between, there is still an event for every change. `work` returns details that are known only afterwards.
 */
export async function changeFile(
  database: Database,
  call: RestCall,
  type: Extract<EventType, `volume_${string}`>,
  payload: Readonly<Record<string, unknown>>,
  work: () => Promise<Readonly<Record<string, unknown>> | void>,
): Promise<{ ok: boolean }> {
  const event: RecordedEvent = { type, category: 'volume', payload };
  const { actor, requestId, sourceAddress, organization } = call;
  const origin = { actor, requestId, sourceAddress, organizationId: organization.id };
  const id = await announceFileChange(database, { ...event, ...origin });
  const keepLease = setInterval(() => {
    // If a lease expires, the worst case is a second, less detailed event.
    extendFileChange(database, id).catch(() => undefined);
  }, FILE_CHANGE_CHECK_MS);
  keepLease.unref();
  const note = async (noted: RecordedEvent) => {
    await call.commit(
      async ({ db, record }) => {
        await endFileChange(db, id);
        await record(noted);
      },
      () => ({ ok: true }),
    );
  };
  try {
    const more = await work();
    await note({ ...event, payload: { ...payload, ...more } });
    return { ok: true };
  } catch (error) {
    if (isRefusal(error)) await endFileChange(database, id);
    else await noteUnknownEnd(call, id, event);
    throw error;
  } finally {
    clearInterval(keepLease);
  }
}

function isRefusal(error: unknown): boolean {
  return (PlatformError.is(error) && REFUSALS.has(error.code)) || isNeverSent(error);
}

/** The request never reached the engine. */
function isNeverSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('syscall' in error && error.syscall === 'connect') || isNeverSent(error.cause);
}

async function noteUnknownEnd(call: RestCall, id: string, event: RecordedEvent): Promise<void> {
  await call
    .commit(async ({ db, record }) => {
      await endFileChange(db, id);
      await record(withUnknownEnd(event));
    })
    // The intent stays stored, and is recorded as an event later.
    .catch(() => undefined);
}
