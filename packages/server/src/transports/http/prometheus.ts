import { ALL_NAMESPACES, PlatformError } from '@svc/contract';
import type { FastifyInstance } from 'fastify';
import type { Authenticate } from '../../access/authenticate.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { SpaceView } from '@svc/engine/client';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { CallMetrics } from '../../accounting/call-metrics.ts';
import type { Database } from '../../store/database.ts';
import { countSandboxes } from '../../store/sandboxes.ts';

/** What Prometheus scrapes. It tells about every namespace, so a key of one namespace may not read it. */
export function registerPrometheus(
  server: FastifyInstance,
  parts: {
    readonly authenticate: Authenticate;
    readonly database: Database;
    readonly health: EngineHealth;
    readonly storage: HostStorage;
    readonly metrics: CallMetrics;
  },
): void {
  const { authenticate, database, health, storage, metrics } = parts;
  server.get('/metrics', async (request, reply) => {
    const caller = await authenticate(request.headers);
    if (caller.namespace !== ALL_NAMESPACES) {
      throw new PlatformError('forbidden', 'a key for all namespaces is needed to read /metrics');
    }
    const sandboxes = [...(await countSandboxes(database))];
    const lines = [
      '# HELP svc_engine_up Whether the engine can run sandboxes.',
      '# TYPE svc_engine_up gauge',
      `svc_engine_up ${health.current.isHealthy ? 1 : 0}`,
      '# HELP svc_sandboxes Sandboxes by observed state.',
      '# TYPE svc_sandboxes gauge',
      ...sandboxes.map(([state, count]) => `svc_sandboxes{state="${state}"} ${count}`),
      ...storageLines(storage.latest),
      '# HELP process_resident_memory_bytes Memory of the server.',
      '# TYPE process_resident_memory_bytes gauge',
      `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
      ...metrics.render(),
    ];
    return await reply.header('content-type', 'text/plain; version=0.0.4').send(`${lines.join('\n')}\n`);
  });
}

/** None while the engine is away. */
function storageLines(view: SpaceView | undefined): readonly string[] {
  if (view === undefined) return [];
  const gauges = [
    ['free', 'Free on the disk of the data folder.', view.freeBytes],
    ['reserve', 'Of it, kept for the engine and the server.', view.reserveBytes],
    ['promised', 'What mounted disks and volumes may still come to take.', view.promisedBytes],
    ['total', 'The disk of the data folder.', view.totalBytes],
  ] as const;
  return [
    ...gauges.flatMap(([name, help, bytes]) => [
      `# HELP svc_disk_${name}_bytes ${help}`,
      `# TYPE svc_disk_${name}_bytes gauge`,
      `svc_disk_${name}_bytes ${bytes}`,
    ]),
    '# HELP svc_disk_short Whether nothing new is begun because the disk is nearly full.',
    '# TYPE svc_disk_short gauge',
    `svc_disk_short ${view.isShort ? 1 : 0}`,
  ];
}
