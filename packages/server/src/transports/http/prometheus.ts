import { ALL_NAMESPACES, PlatformError } from '@svc/contract';
import type { OfNode, PoolView, SpaceView } from '@svc/contract/orchestrator';
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

/** Empty while the engine is unreachable: a scrape must not wait for it. */
async function readPool(nodes: Nodes): Promise<readonly OfNode<PoolView>[]> {
  return await nodes.pool(AbortSignal.timeout(POOL_TIMEOUT_MS)).catch(() => []);
}

function poolLines(views: readonly OfNode<PoolView>[]): readonly string[] {
  const waiting = views.flatMap((view) =>
    [...Map.groupBy(view.waiting, ({ isolation }) => isolation)].map(
      ([name, found]) => [labelsOf(view, `class="${name}"`), found.length] as const,
    ),
  );
  return [
    ...(views.length === 0 ? [] : renderFamily('svc_pool_waiting', waiting)),
    ...ofEach('svc_pool_max', views, ({ max }) => max),
    ...ofEach('svc_pool_handed_out_total', views, ({ handedOut }) => handedOut),
    ...ofEach('svc_pool_missed_total', views, ({ missed }) => missed),
    ...ofEach('svc_pool_given_back_total', views, ({ givenBack }) => givenBack),
  ];
}

function storageLines(views: readonly OfNode<SpaceView>[]): readonly string[] {
  return [
    ...ofEach('svc_disk_free_bytes', views, ({ freeBytes }) => freeBytes),
    ...ofEach('svc_disk_reserve_bytes', views, ({ reserveBytes }) => reserveBytes),
    ...ofEach('svc_disk_promised_bytes', views, ({ promisedBytes }) => promisedBytes),
    ...ofEach('svc_disk_total_bytes', views, ({ totalBytes }) => totalBytes),
    ...ofEach('svc_disk_short', views, ({ isShort }) => (isShort ? 1 : 0)),
  ];
}

/** Nothing while no node answers. */
function ofEach<View extends { readonly node: string | null }>(
  name: Parameters<typeof renderFamily>[0],
  views: readonly View[],
  value: (view: View) => number,
): readonly string[] {
  if (views.length === 0) return [];
  return renderFamily(
    name,
    views.map((view) => [labelsOf(view), value(view)] as const),
  );
}

/** The only node has no name. */
function labelsOf({ node }: { readonly node: string | null }, ...others: readonly string[]): string {
  const labels = [...(node === null ? [] : [`node="${node}"`]), ...others];
  return labels.length === 0 ? '' : `{${labels.join()}}`;
}
