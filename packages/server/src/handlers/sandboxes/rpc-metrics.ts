import { ALL_NAMESPACES } from '@svc/contract';
import type { Call, Handlers } from '../../dispatch/dispatch.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Database } from '../../store/database.ts';
import { listSandboxes, type SandboxRecord } from '../../store/sandboxes.ts';
import { notFound } from './running-sandbox.ts';

const MIB = 1024 * 1024;

export function metricsHandlers(
  database: Database,
  orchestrator: Orchestrator,
): Pick<Handlers, 'sandbox.metrics.get'> {
  return {
    'sandbox.metrics.get': async ({ sandbox }, call) => {
      const namespace = visibleNamespace(call);
      const records = await listSandboxes(database, {
        ...(namespace === ALL_NAMESPACES ? {} : { namespace }),
        ...(typeof sandbox === 'string' ? { name: sandbox } : {}),
      });
      if (typeof sandbox === 'string' && records.length === 0) throw notFound(sandbox);
      const mayRun = records.some(({ desired }) => desired === 'running');
      const usage = mayRun ? await orchestrator.metrics(call.signal) : [];
      const byId = new Map(usage.map((report) => [report.id, report]));
      return { sandboxes: records.map((record) => describe(record, byId.get(record.id))) };
    },
  };
}

/** `*` means every namespace that the caller's key reaches. */
function visibleNamespace({ namespace, caller }: Call): string {
  return namespace === ALL_NAMESPACES ? caller.namespace : namespace;
}

function describe(
  { namespace, name, observed, spec }: SandboxRecord,
  usage: { cpuPercent: number; memoryBytes: number; diskUsedBytes: number } | undefined,
) {
  return {
    namespace,
    name,
    running: usage !== undefined || (observed === 'running' && !isMeasured(spec)),
    cpu_usage: usage?.cpuPercent ?? null,
    memory_usage: usage === undefined ? null : Math.round(usage.memoryBytes / MIB),
    disk_usage: usage?.diskUsedBytes ?? null,
  };
}

/** A running sandbox without metrics. */
function isMeasured({ runtime }: SandboxRecord['spec']): boolean {
  return runtime?.disable_metrics_sample !== true;
}
