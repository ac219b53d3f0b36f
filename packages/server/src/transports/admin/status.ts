import type { NodeReport, OfNode, SpaceView } from '@svc/contract/orchestrator';
import { hasPeople } from '../../access/people.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { Nodes } from '../../orchestrator/nodes.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { listKeys } from '../../store/signed-keys.ts';
import { listSandboxes } from '../../store/sandboxes.ts';

const METRICS_TIMEOUT_MS = 2000;

/** The output of `svc server status` for a running server. */
export interface ServerStatus {
  readonly url: string;
  readonly isDev: boolean;
  readonly startedAt: string;
  /** Whether there are user accounts; false: sign-in is not possible yet. */
  readonly hasPeople: boolean;
  /** Number of issued keys that are still valid. */
  readonly keys: number;
  readonly engine: {
    readonly isHealthy: boolean;
    /** Why it is unhealthy. */
    readonly reason: string | null;
    readonly isolation: string | null;
  };
  /** The disks of data folders; empty while the engine is away. */
  readonly disks: readonly OfNode<SpaceView>[];
  readonly nodes: readonly Pick<NodeReport, 'name' | 'problem'>[];
  readonly sandboxes: readonly SandboxStatus[];
}

export interface SandboxStatus {
  readonly namespace: string;
  readonly name: string;
  readonly state: string;
  readonly failure: string | null;
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
  readonly diskBytes: number | null;
}

export interface StatusParts {
  readonly url: string;
  readonly isDev: boolean;
  readonly startedAt: string;
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly nodes: Nodes;
  readonly health: EngineHealth;
}

export async function gatherStatus(parts: StatusParts): Promise<ServerStatus> {
  const { url, isDev, startedAt, database, orchestrator, nodes, health } = parts;
  const { current } = health;
  const [records, keys, isInhabited] = await Promise.all([
    listSandboxes(database),
    listKeys(database),
    hasPeople(database),
  ]);
  const signal = AbortSignal.timeout(METRICS_TIMEOUT_MS);
  // The command works while the engine is unreachable, too.
  const usage = current.isHealthy ? await orchestrator.metrics(signal).catch(() => []) : [];
  const disks = current.isHealthy ? await nodes.storage(signal).catch(() => []) : [];
  const listed = current.isHealthy ? await nodes.listNodes(signal).catch(() => []) : [];
  const byId = new Map(usage.map((report) => [report.id, report]));
  const now = new Date().toISOString();
  return {
    url,
    isDev,
    startedAt,
    hasPeople: isInhabited,
    keys: keys.filter(({ expires_at: expiresAt }) => expiresAt === null || expiresAt > now).length,
    engine: {
      isHealthy: current.isHealthy,
      reason: current.isHealthy ? null : current.reason,
      isolation: current.isHealthy ? current.description.isolation : null,
    },
    disks,
    nodes: listed.map(({ name, problem }) => ({ name, problem })),
    sandboxes: records.map(({ id, namespace, name, observed, failureMessage }) => ({
      namespace,
      name,
      state: observed,
      failure: failureMessage,
      cpuPercent: byId.get(id)?.cpuPercent ?? null,
      memoryBytes: byId.get(id)?.memoryBytes ?? null,
      diskBytes: byId.get(id)?.diskUsedBytes ?? null,
    })),
  };
}
