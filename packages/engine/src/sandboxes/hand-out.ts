import { settleAll } from '@svc/contract/async';
import { applyNetwork } from './interception.ts';
import { configureAgain } from './configure-guest.ts';
import type { StoredRecord } from './stored-record.ts';
import type { Kit } from './kit.ts';
import { makeUsable } from './make-usable.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';
import { keepsSpares } from './spare-process.ts';

/** The part of a create that a pooled sandbox receives when it is handed out. */
export type Identity = Pick<
  EngineRecord,
  'id' | 'spec' | 'volumes' | 'hostVolume' | 'hostFolder' | 'imageScope' | 'networkCeiling'
>;

interface Waiting {
  readonly stored: StoredRecord;
  readonly run: Run;
  /** Processes were started ahead in it while it was in the pool. */
  readonly hasSpares: boolean;
}

/** Hands a running sandbox of the pool to a caller: its record, configuration, network and scripts become those of the request. */
export async function handOut(
  kit: Kit,
  { stored, run, hasSpares }: Waiting,
  identity: Identity,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = new Date().toISOString();
  const before = stored.value;
  const image = { ...before.image, reference: identity.spec.image.reference };
  const base = { ...before, ...identity, image, createdAt: startedAt, complete: true };
  const record = { ...base, run: base.run === null ? null : { ...base.run, startedAt } };
  const endsSpares = hasSpares && !keepsSpares(before, record);
  stored.append(record);
  kit.guestFolders.writeScripts(record.handle, identity.spec.runtime?.scripts ?? {});
  // In parallel, because the caller waits. All steps are over before the sandbox is handed over or, when one fails, removed.
  await settleAll([
    configureAgain(kit, run, { before, record, endsSpares }, signal),
    applyNetwork(kit.network, run.slot, record, kit.secrets.of(record.handle)),
  ]);
  await makeUsable(kit, stored, run, signal);
  run.touch();
  // Wakes the sandbox for the caller's first process; that takes a millisecond, which the answer need not wait for.
  setImmediate(() => {
    run.wake();
    run.restSoon();
  });
}
