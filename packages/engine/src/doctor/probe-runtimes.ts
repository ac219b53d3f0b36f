import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Cgroups } from '../cgroup/cgroups.ts';
import type { EngineConfig } from '../daemon/config.ts';
import type { HostCalls } from '../host/host-calls.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { RUNTIMES, type RuntimeName } from '../runtime/runtimes.ts';
import { searchPath } from './config.ts';
import type { RuntimeFact } from './host-facts.ts';

const PROBE_TIMEOUT_MS = 15_000;
/** Ids that no slot uses: below the first slot, and below those of the engine's own probes. */
export const PROBE_ID_BASE = 0x1000_0000 - 4 * 65_536;

interface Means {
  readonly hostCalls: HostCalls;
  readonly folder: string;
  readonly config: EngineConfig;
  readonly cgroups: Cgroups;
}

/** Starts an empty sandbox with each runtime that the engine knows. */
export async function probeRuntimes(means: Means): Promise<readonly RuntimeFact[]> {
  const { hostCalls, folder, config, cgroups } = means;
  const { initProgram, runtimePaths } = config;
  const probe = { hostCalls, initProgram, folder: join(folder, 'probe'), idBase: PROBE_ID_BASE };
  return await Promise.all(
    RUNTIMES.map(({ name, create }) => {
      const program = runtimePaths[name];
      const runtime = create({ folder: join(folder, name), cgroups, hostCalls, probe, program });
      return examine(name, runtime, program);
    }),
  );
}

async function examine(name: RuntimeName, runtime: Runtime, program: string): Promise<RuntimeFact> {
  const { isolation } = runtime;
  try {
    const probe = await runtime.probe(AbortSignal.timeout(PROBE_TIMEOUT_MS));
    return { name, isolation, ...probe, released: probe.released ?? (await fileDate(program)) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { name, isolation, usable: false, reason, version: null, released: null };
  }
}

/** Debian sets the time of a package's files to that of its build. */
async function fileDate(program: string): Promise<Date | null> {
  const candidates = isAbsolute(program) ? [program] : searchPath().map((folder) => join(folder, program));
  for (const candidate of candidates) {
    const stats = await realpath(candidate)
      .then(stat)
      .catch(() => null);
    if (stats !== null) return stats.mtime;
  }
  return null;
}
