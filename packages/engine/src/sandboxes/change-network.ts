import type { Network, NetworkChange, SandboxSpec } from '@svc/contract';
import type { SecretValues } from '../client/engine-api.ts';
import type { Network as NetworkPort, Slot } from '../network/network.ts';
import { applyNetwork, requireValues } from './interception.ts';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';
import { configureAgain } from './configure-guest.ts';
import { trustAuthority } from './trust-authority.ts';

export interface NewNetwork {
  readonly network: Network;
  /** Undefined: it stays as it is. */
  readonly networkCeiling: readonly string[] | null | undefined;
  /** Of secrets; those that are not given stay as they are. */
  readonly values: SecretValues;
}

const TIMEOUT_MS = 15_000;

/**
 * What becomes of the network of a spec: TLS and secrets stay unless they are given, and so does what cannot be changed; of the
 * rest what is absent becomes the default.
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

/** What a sandbox is held to: what its record says, and values that it does not. */
interface NetworkState {
  readonly record: EngineRecord;
  readonly values: SecretValues;
}

/**
 * Lets the second state hold in place of the first one, and saves it. When it cannot be saved the first one holds on; an engine that
 * ends in between goes on with what is saved.
 */
export async function holdNetwork(
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

/** Does so for a sandbox, and tells it what that means inside: placeholders for new processes, and whom to trust. */
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
  await holdNetwork(kit.network, run?.slot ?? null, states, async () => {
    await save();
    kit.secrets.add(after.handle, given);
  });
  if (run === undefined) return;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await configureAgain(kit, run, { before, record: after, endsSpares: false }, signal);
  await trustAuthority(kit.network, after, run.link, signal);
}
