import type { SecretValues } from '../client/engine-api.ts';
import type { KeptSlot } from '../network/network.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { interceptionOf } from './interception.ts';
import type { EngineRecord } from './record.ts';

/** The slot that a record says is in use, and what it may reach. None when it has none. */
export function keptSlotOf({ run, spec }: EngineRecord, values: SecretValues): readonly KeptSlot[] {
  const slot = run?.slot ?? null;
  // The spec was understood when it was created, so this does not fail.
  if (slot === null) return [];
  const { network } = spec;
  return [{ key: slot.key, policy: resolvePolicy(network), interception: interceptionOf(network, values) }];
}
