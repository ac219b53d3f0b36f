import { ISOLATIONS, type Isolation } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import type { Runtime, RuntimeProbe } from '../runtime/runtime.ts';

const PROBE_TIMEOUT_MS = 15_000;

export interface ProbedRuntime extends RuntimeProbe {
  readonly name: string;
  readonly isolation: Isolation;
}

export interface ProbedRuntimes {
  /** Usable, in order of preference. */
  readonly runtimes: readonly Runtime[];
  /** Includes runtimes that failed their probe: their sandboxes may still run. */
  readonly knownRuntimes: readonly Runtime[];
  readonly defaultIsolation: Isolation | null;
  readonly missing: ReadonlyMap<Isolation, string>;
  readonly probes: readonly ProbedRuntime[];
}

/** May answer from its cache instead of probing. */
export type Recall = (runtime: Runtime, probe: () => Promise<RuntimeProbe>) => Promise<RuntimeProbe>;

/**
 * Starts a small sandbox with each runtime and keeps the runtimes that work; `auto` is the strongest class among them.
 * Rejects when `signal` aborts, after everything that it started is removed.
 */
export async function chooseRuntimes(
  candidates: readonly Runtime[],
  wanted: Isolation | 'auto',
  logger: Logger,
  signal: AbortSignal,
  recall: Recall = (_, probe) => probe(),
): Promise<ProbedRuntimes> {
  const probes = await Promise.all(candidates.map((runtime) => probe(runtime, signal, recall)));
  signal.throwIfAborted();
  for (const { name, usable, reason } of probes) logger.info({ runtime: name, usable, reason }, 'probed');
  const runtimes = candidates.filter((_, index) => probes[index]?.usable === true);
  const isOffered = (isolation: Isolation) => runtimes.some((runtime) => runtime.isolation === isolation);
  const missing = new Map(
    ISOLATIONS.filter((name) => !isOffered(name)).map((name) => [name, whyMissing(name, probes)]),
  );
  const strongest = ISOLATIONS.find(isOffered) ?? null;
  return {
    runtimes,
    knownRuntimes: candidates,
    defaultIsolation: wanted === 'auto' ? strongest : wanted,
    missing,
    probes,
  };
}

async function probe(runtime: Runtime, signal: AbortSignal, recall: Recall): Promise<ProbedRuntime> {
  const { name, isolation } = runtime;
  try {
    const found = await recall(runtime, () =>
      runtime.probe(AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)])),
    );
    return { name, isolation, ...found };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { name, isolation, usable: false, reason, version: null, released: null };
  }
}

function whyMissing(isolation: Isolation, probes: readonly ProbedRuntime[]): string {
  const reasons = probes.filter((candidate) => candidate.isolation === isolation).map(({ reason }) => reason);
  return reasons.length === 0 ? 'no runtime of this class is installed' : reasons.join('; ');
}
