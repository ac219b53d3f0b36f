import type { Network, NetworkChange, SandboxSpec } from '@svc/contract';
import type { SecretValues } from '@svc/contract/orchestrator';
import type { Network as NetworkPort, Slot } from '../network/network.ts';
import { applyNetwork, requireValues } from './interception.ts';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';
import { configureAgain } from './configure-guest.ts';
import { trustAuthority } from './trust-authority.ts';

export interface NewNetwork {
  readonly network: Network;
  /** Undefined leaves the ceiling unchanged. */
  readonly networkCeiling: readonly string[] | null | undefined;
  /** Secret values by name; secrets that are not named keep their values. */
  readonly values: SecretValues;
}

const TIMEOUT_MS = 15_000;

/**
 * Applies a change to the network of a spec. TLS settings and secrets stay unless they are given, and so do fields that cannot change at
 * run time; all other absent fields return to their defaults.
 */
export function changedNetwork({ network }: SandboxSpec, change: NetworkChange): Network {
  const {
    policy: _policy,
    dns: _dns,
    strict: _strict,
    max_connections: _connections,
    max_udp_connections: _udpConnections,
    ...rest
  } = network ?? {};
  return { ...rest, ...change };
}

/** The network settings in force: those of the record, and the secret values, which are not in it. */
interface NetworkState {
  readonly record: EngineRecord;
  readonly values: SecretValues;
}

/**
 * Replaces the first state by the second and saves it. When saving fails the first state is restored; an engine that is killed in between
 * continues with the saved state.
 */
export async function replaceNetwork(
  network: Pick<NetworkPort, 'setPolicy'>,
  slot: Slot | null,
  [before, after]: readonly [NetworkState, NetworkState],
  save: () => Promise<void>,
): Promise<void> {
  if (slot === null) return await save();
  await applyNetwork(network, slot, after.record, after.values);
  try {
    await save();
  } catch (error) {
    await applyNetwork(network, slot, before.record, before.values);
    throw error;
  }
}

/** Changes the network of a sandbox, and updates what it sees inside: placeholders for new processes, and trusted authorities. */
export async function changeNetwork(
  kit: Pick<Kit, 'network' | 'secrets' | 'rlimitCeilings'>,
  run: Run | undefined,
  [before, after]: readonly [EngineRecord, EngineRecord],
  given: SecretValues,
  save: () => Promise<void>,
): Promise<void> {
  const known = kit.secrets.of(after.handle);
  const values = { ...known, ...given };
  if (run !== undefined) requireValues(after.spec.network, values);
  const states = [
    { record: before, values: known },
    { record: after, values },
  ] as const;
  await replaceNetwork(kit.network, run?.slot ?? null, states, async () => {
    await save();
    kit.secrets.add(after.handle, given);
  });
  if (run === undefined) return;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await configureAgain(kit, run, { before, record: after, endsSpares: false }, signal);
  await trustAuthority(kit.network, after, run.link, signal);
}
