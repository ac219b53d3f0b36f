import { ALL_NAMESPACES, PlatformError } from '@svc/contract';
import type { PoolView, SpaceView } from '@svc/contract/orchestrator';
import type { FastifyInstance } from 'fastify';
import type { Authenticate } from '../../access/authenticate.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { Nodes } from '../../orchestrator/nodes.ts';
import { renderFamily } from '../../accounting/metric-families.ts';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { CallMetrics } from '../../accounting/call-metrics.ts';
import type { Database } from '../../store/database.ts';
import { countSandboxes } from '../../store/sandboxes.ts';
import { countPending } from '../../store/webhook-deliveries.ts';
import type { DeliveryOutcomes } from '../../webhooks/delivery-outcomes.ts';

const POOL_TIMEOUT_MS = 1000;

/** The endpoint for Prometheus. It covers all namespaces, so a key of one namespace is refused. */
export function registerPrometheus(
  server: FastifyInstance,
  parts: {
    readonly authenticate: Authenticate;
    readonly database: Database;
    readonly nodes: Nodes;
    readonly health: EngineHealth;
    readonly storage: HostStorage;
    readonly metrics: CallMetrics;
    readonly deliveries: DeliveryOutcomes;
  },
): void {
  const { authenticate, database, nodes, health, storage, metrics, deliveries } = parts;
  server.get('/metrics', async (request, reply) => {
    const caller = await authenticate(request.headers);
    if (caller.namespace !== ALL_NAMESPACES) {
      throw new PlatformError('forbidden', 'a key for all namespaces is needed to read /metrics');
    }
    const states = [...(await countSandboxes(database))];
    const lines = [
      ...renderFamily('svc_engine_up', [['', health.current.isHealthy ? 1 : 0]]),
      ...renderFamily(
        'svc_sandboxes',
        states.map(([state, count]) => [`{state="${state}"}`, count]),
      ),
      ...poolLines(await readPool(nodes)),
      ...storageLines(storage.latest),
      ...renderFamily(
        'svc_webhook_deliveries_total',
        deliveries.entries().map(([outcome, count]) => [`{outcome="${outcome}"}`, count]),
      ),
      ...renderFamily('svc_webhook_backlog', [['', await countPending(database)]]),
      ...renderFamily('process_resident_memory_bytes', [['', process.memoryUsage.rss()]]),
      ...metrics.render(),
    ];
    return await reply.header('content-type', 'text/plain; version=0.0.4').send(`${lines.join('\n')}\n`);
  });
}

/** Undefined while the engine is unreachable: a scrape must not wait for it. */
async function readPool(nodes: Nodes): Promise<PoolView | undefined> {
  return await nodes.pool(AbortSignal.timeout(POOL_TIMEOUT_MS)).catch(() => undefined);
}

function poolLines(view: PoolView | undefined): readonly string[] {
  if (view === undefined) return [];
  const classes = Map.groupBy(view.waiting, ({ isolation }) => isolation);
  return [
    ...renderFamily(
      'svc_pool_waiting',
      [...classes].map(([name, waiting]) => [`{class="${name}"}`, waiting.length]),
    ),
    ...renderFamily('svc_pool_max', [['', view.max]]),
    ...renderFamily('svc_pool_handed_out_total', [['', view.handedOut]]),
    ...renderFamily('svc_pool_missed_total', [['', view.missed]]),
    ...renderFamily('svc_pool_given_back_total', [['', view.givenBack]]),
  ];
}

/** Empty while the engine is unreachable. */
function storageLines(view: SpaceView | undefined): readonly string[] {
  if (view === undefined) return [];
  return [
    ...renderFamily('svc_disk_free_bytes', [['', view.freeBytes]]),
    ...renderFamily('svc_disk_reserve_bytes', [['', view.reserveBytes]]),
    ...renderFamily('svc_disk_promised_bytes', [['', view.promisedBytes]]),
    ...renderFamily('svc_disk_total_bytes', [['', view.totalBytes]]),
    ...renderFamily('svc_disk_short', [['', view.isShort ? 1 : 0]]),
  ];
}
