import type { CreateSandbox } from '@svc/contract/orchestrator';
import { retryLostHelper } from '../host/retry-lost-helper.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';
import type { Origin } from './origin.ts';
import { newHandle, type EngineRecord } from './record.ts';

/** `id` null: for the warm pool. */
type RecordRequest = Omit<CreateSandbox, 'id' | 'spec'> & { readonly id: string | null };

/** Makes what a sandbox is while it does not run: a disk, and the record that says so. Leaves nothing when it fails. */
export async function createRecord(
  kit: Kit,
  request: RecordRequest,
  origin: Origin,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<EngineRecord> {
  const { id } = request;
  const record = newRecord(request, origin, runtime);
  await using undo = new AsyncDisposableStack();
  undo.defer(() => kit.records.remove(record.handle));
  undo.defer(() => kit.secrets.remove(record.handle));
  undo.defer(() => kit.rootfs.removeDisk(record.handle));
  // A create of a disk that fails removes the part that it made.
  await retryLostHelper(
    () => origin.createDisk(record.handle, signal, { isMountedNext: id !== null && request.start === true }),
    signal,
    (error) => kit.logger.warn({ error, id }, 'svc-host ended while a disk was made, which begins again'),
  );
  // Written last: a crash before this leaves a disk without a record, which recovery removes.
  // A run does not outlive a loss of power, so what is started at once need not wait for the disk.
  await kit.records.write(record, { durable: id !== null && request.start !== true });
  kit.secrets.add(record.handle, request.secretValues ?? {});
  undo.move();
  return record;
}

function newRecord(request: RecordRequest, { spec, image }: Origin, runtime: Runtime): EngineRecord {
  return {
    handle: newHandle(),
    id: request.id,
    complete: request.id !== null,
    spec,
    isolation: runtime.isolation,
    runtime: runtime.name,
    image: { reference: spec.image.reference, id: image.id, config: image.config },
    imageScope: request.imageScope ?? null,
    volumes: request.volumes ?? {},
    hostVolume: request.hostVolume ?? null,
    hostFolder: request.hostFolder ?? null,
    networkCeiling: request.networkCeiling ?? null,
    cgroupParent: request.cgroupParent ?? null,
    createdAt: new Date().toISOString(),
    patched: false,
    state: 'created',
    run: null,
  };
}
