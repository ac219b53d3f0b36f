import { isErrno } from '@svc/contract/errno';
import type { SecretValues } from '@svc/contract/orchestrator';
import type { KeptSlot } from '../network/network.ts';
import { ceilingsOf } from '../policy/ceiling.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { interceptionOf } from './interception.ts';
import type { Kit } from './kit.ts';
import { volumesOf } from './prepare-mounts.ts';
import type { EngineRecord } from './record.ts';

/**
 * After a restart: brings every part of the host into agreement with the records, and removes incomplete objects. Returns the records. Repeating it
 * changes nothing.
 */
export async function recoverHost(kit: Kit): Promise<readonly EngineRecord[]> {
  const halfMade: string[] = [];
  const damaged: string[] = [];
  const records = await kit.records.readAll((handle, error) => {
    if (isErrno(error, 'ENOENT')) return halfMade.push(handle);
    kit.logger.error({ handle, error }, 'the record of a sandbox cannot be read; its disk is kept');
    return damaged.push(handle);
  });
  const known = records.map((record) => record.handle);
  kit.secrets.keepOnly(new Set(known));
  await removeUnknown(kit, new Set(known));
  await Promise.all([
    kit.network.recover(records.flatMap((record) => keptSlotOf(record, kit.secrets.of(record.handle)))),
    kit.rootfs.recover([...known, ...damaged]),
    kit.volumes.recover(holdersOf(records)),
    kit.snapshots.recover(),
  ]);
  for (const handle of halfMade) kit.records.remove(handle);
  await Promise.allSettled(damaged.map((handle) => kit.rootfs.unmount(handle)));
  return records;
}

/** Sandboxes that a runtime knows and no record does: their create was cut off. */
async function removeUnknown({ knownRuntimes, logger }: Kit, known: ReadonlySet<string>): Promise<void> {
  for (const runtime of knownRuntimes) {
    for (const handle of await runtime.list()) {
      if (known.has(handle)) continue;
      // The next engine tries again; what its cgroup holds cannot reach anything of ours.
      await runtime
        .remove(handle)
        .catch((error: unknown) => logger.error({ error, handle }, 'a left sandbox cannot be removed'));
    }
  }
}

function holdersOf(records: readonly EngineRecord[]): Map<string, string[]> {
  const holders = new Map<string, string[]>();
  for (const record of records.filter(({ state }) => state === 'running')) {
    for (const volume of volumesOf(record))
      holders.set(volume, [...(holders.get(volume) ?? []), record.handle]);
  }
  return holders;
}

/** The slot that a record says is in use, and what it may reach. None when it has none. */
function keptSlotOf(record: EngineRecord, values: SecretValues): readonly KeptSlot[] {
  const { run, spec, networkCeiling, imageScope: scope = null } = record;
  const slot = run?.slot ?? null;
  // The spec was understood when it was created, so this does not fail.
  if (slot === null) return [];
  const { network } = spec;
  const policy = resolvePolicy(network, ceilingsOf(networkCeiling));
  return [{ key: slot.key, policy, interception: interceptionOf(network, values), scope }];
}
