import { repeatEvery, type BackgroundTask } from './tasks/background.ts';
import type { ChannelPool } from './orchestrator/channel-pool.ts';
import type { CodeContexts } from './code/code-contexts.ts';
import { NO_CLAIMS, rowClaims } from './sandboxes/claims.ts';
import { Convergence } from './sandboxes/convergence.ts';
import { MetricHistory } from './accounting/metric-history.ts';
import { ProcessReconciler } from './processes/process-reconciler.ts';
import { logOrphans } from './orphans/orphans.ts';
import type { EngineHealth } from './orchestrator/engine-health.ts';
import type { PortForwarder } from './published-ports/port-forwarder.ts';
import { RefusedConnectionLog } from './published-ports/refused-connections.ts';
import { enforceLimits } from './sandboxes/enforce-limits.ts';
import { Reconciler } from './sandboxes/reconciler.ts';
import { removeFailedCreates } from './sandboxes/remove-failed-creates.ts';
import { SnapshotWorker } from './snapshots/snapshot-worker.ts';
import { ensureMade } from './volumes/make-volume.ts';
import { VolumeReconciler } from './volumes/volume-reconciler.ts';
import { WebhookWorker } from './webhooks/webhook-worker.ts';
import type { ServerParts } from './server-parts.ts';

const FAILED_CHECK_MS = 10 * 60_000;

export function createConvergence(
  parts: ServerParts,
  made: {
    readonly channels: ChannelPool;
    readonly ports: PortForwarder;
    readonly codeContexts: CodeContexts;
  },
): Convergence {
  const { codeContexts, ...pools } = made;
  const { database, orchestrator, volumeStore, sealer, codeRunner, logger } = parts;
  const { defaultVolumeGib, networkCeilings } = parts.restSettings;
  return new Convergence({
    ...pools,
    networkCeilings,
    database,
    orchestrator,
    refused: new RefusedConnectionLog(
      (id, refused, signal) => orchestrator.noteRefused(id, refused, signal),
      logger,
    ),
    claims: parts.isAlone === true ? NO_CLAIMS : rowClaims(database),
    sealer,
    makeVolume: (volume) => ensureMade({ database, volumeStore, defaultVolumeGib }, volume),
    onRunEnded: (sandboxId) => {
      codeRunner.forget(sandboxId);
      codeContexts.forget(sandboxId);
    },
    logger,
  });
}

/** Background workers that handlers wake. */
export function createWorkers(parts: ServerParts, channels: ChannelPool) {
  const { database, snapshotStore: store, logger } = parts;
  return {
    snapshotWorker: new SnapshotWorker({ database, store, logger }),
    volumeReconciler: createVolumeReconciler(parts),
    processReconciler: new ProcessReconciler({ database, channels, logger }),
    metricHistory: createMetricHistory(parts),
    webhookWorker: createWebhookWorker(parts),
  };
}

export function createReconciler(
  parts: ServerParts,
  made: { readonly convergence: Convergence; readonly health: EngineHealth },
): Reconciler {
  const { database, orchestrator, nodes, logger } = parts;
  const { recoveryMs } = parts.restSettings;
  const log = (signal: AbortSignal) => logOrphans(parts, signal);
  return new Reconciler({ database, orchestrator, nodes, ...made, recoveryMs, logOrphans: log, logger });
}

export function createLimitCheck(
  { database, restSettings, logger }: ServerParts,
  convergence: Convergence,
): BackgroundTask {
  const check = () => enforceLimits(database, (sandboxId) => convergence.convergeSoon(sandboxId));
  return repeatEvery(restSettings.limitCheckMs, 'enforcing limits', check, logger);
}

/** Empty when failed creates are kept for ever. */
export function createFailedSandboxRemoval(
  { database, restSettings: { keepFailedMs }, logger }: ServerParts,
  convergence: Convergence,
): readonly BackgroundTask[] {
  if (keepFailedMs === null) return [];
  const remove = () =>
    removeFailedCreates(database, new Date(Date.now() - keepFailedMs).toISOString(), (sandboxId) =>
      convergence.convergeSoon(sandboxId),
    );
  return [repeatEvery(Math.min(keepFailedMs, FAILED_CHECK_MS), 'removing what never ran', remove, logger)];
}

function createVolumeReconciler({
  database,
  volumeStore,
  restSettings,
  logger,
}: ServerParts): VolumeReconciler {
  const { defaultVolumeGib, volumeSampleMs } = restSettings;
  return new VolumeReconciler({ database, volumeStore, defaultVolumeGib, sampleMs: volumeSampleMs, logger });
}

function createMetricHistory({ database, orchestrator, restSettings, logger }: ServerParts): MetricHistory {
  const { metricSampleMs: sampleMs } = restSettings;
  return new MetricHistory({ database, orchestrator, sampleMs, logger });
}

function createWebhookWorker({ database, sealer, restSettings, logger }: ServerParts): WebhookWorker {
  const { outbound, webhooks: settings } = restSettings;
  return new WebhookWorker({ database, sealer, outbound, settings, logger });
}
