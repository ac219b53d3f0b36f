import { OpenId } from './access/openid.ts';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import type { ChannelPool } from './orchestrator/channel-pool.ts';
import type { CodeContexts } from './code/code-contexts.ts';
import { RestDispatch } from './dispatch/rest-dispatch.ts';
import { Dispatch, type OnCallEnd } from './dispatch/dispatch.ts';
import { codeHandlers } from './handlers/code/rpc-code.ts';
import { commandHandlers } from './handlers/processes/rpc-commands.ts';
import { healthHandlers, type ServiceProblem } from './handlers/server/health.ts';
import { metricsHandlers } from './handlers/sandboxes/rpc-metrics.ts';
import { sandboxHandlers } from './handlers/sandboxes/rpc-sandboxes.ts';
import type { EngineHealth } from './orchestrator/engine-health.ts';
import type { HostStorage } from './accounting/host-storage.ts';
import type { Convergence } from './sandboxes/convergence.ts';
import type { MetricHistory } from './accounting/metric-history.ts';
import type { CallMetrics } from './accounting/call-metrics.ts';
import type { ProcessReconciler } from './processes/process-reconciler.ts';
import type { PreviewAddresses } from './handlers/previews/preview-place.ts';
import { recordRefusedCalls } from './dispatch/record-refusal.ts';
import { createRestHandlers } from './handlers/create-rest-handlers.ts';
import type { SnapshotWorker } from './snapshots/snapshot-worker.ts';
import { isCallerGone } from './transports/http/caller-gone.ts';
import { describeRestFailure } from './transports/http/rest-failure.ts';
import type { VolumeReconciler } from './volumes/volume-reconciler.ts';
import type { WebhookWorker } from './webhooks/webhook-worker.ts';
import type { ServerParts } from './server-parts.ts';
import { activeSpan } from './tracing/span.ts';

/** The dispatch of JSON-RPC and MCP. */
export function createDispatch(
  { database, orchestrator, codeRunner, sealer, restSettings, logger }: ServerParts,
  made: {
    readonly health: EngineHealth;
    readonly problem: ServiceProblem;
    readonly storage: HostStorage;
    readonly metrics: CallMetrics;
    readonly convergence: Convergence;
    readonly channels: ChannelPool;
  },
): Dispatch {
  const handlers = {
    ...healthHandlers(made.problem),
    ...sandboxHandlers({ database, orchestrator, sealer, logger, ...made, ...restSettings }),
    ...metricsHandlers(database, orchestrator),
    ...codeHandlers(database, codeRunner),
    ...commandHandlers(database, made.channels),
  };
  return new Dispatch(
    handlers,
    reportCalls(made.metrics, logger),
    recordRefusedCalls(database, (...failure) => made.storage.explain(...failure)),
  );
}

export function createRestDispatch(
  parts: ServerParts,
  made: {
    readonly storage: HostStorage;
    readonly convergence: Convergence;
    readonly health: EngineHealth;
    readonly metrics: CallMetrics;
    readonly snapshotWorker: SnapshotWorker;
    readonly volumeReconciler: VolumeReconciler;
    readonly channels: ChannelPool;
    readonly codeContexts: CodeContexts;
    readonly processReconciler: ProcessReconciler;
    readonly metricHistory: MetricHistory;
    readonly webhookWorker: WebhookWorker;
    readonly previews: PreviewAddresses | null;
  },
): RestDispatch {
  const { database, sealer, restSettings, identify, logger } = parts;
  const { metrics, ...workers } = made;
  const handlers = createRestHandlers({
    ...parts,
    ...workers,
    ssh: parts.ssh ?? (() => null),
    maxBodyBytes: parts.options.limits.maxBodyBytes,
    ...restSettings,
    openId: new OpenId(restSettings.outbound),
  });
  return new RestDispatch({
    database,
    handlers,
    identify,
    sealer,
    explain: (...failure) => made.storage.explain(...failure),
    describeFailure: (error) => {
      const { status, body } = describeRestFailure(error, '');
      return { status, body: JSON.stringify(body) };
    },
    onCallEnd: ({ operation, requestId, organization, durationMs, failure }) => {
      const outcome = outcomeOf(failure);
      metrics.count(operation, outcome, durationMs);
      traceCall(operation, organization, durationMs, outcome);
      logger.debug({ operation, requestId, organization, durationMs, outcome }, 'call');
    },
  });
}

function outcomeOf(failure: unknown): string {
  if (failure === null) return 'success';
  if (isCallerGone(failure)) return 'cancelled';
  return PlatformError.is(failure) ? failure.code : 'internal';
}

/** A request may be several calls: a batch, or a tool of MCP. */
function traceCall(operation: string, organization: string, durationMs: number, outcome: string): void {
  const attributes = { 'svc.operation': operation, 'svc.organization': organization };
  const isFine = outcome === 'success' || outcome === 'cancelled';
  activeSpan()
    ?.child(operation, { attributes, durationMs })
    .end(isFine ? null : outcome);
}

function reportCalls(metrics: CallMetrics, logger: Logger): OnCallEnd {
  return ({ operation, requestId, namespace, durationMs, failure }) => {
    const outcome = outcomeOf(failure);
    metrics.count(operation, outcome, durationMs);
    traceCall(operation, namespace, durationMs, outcome);
    logger.debug({ operation, requestId, namespace, durationMs, outcome }, 'call');
  };
}
