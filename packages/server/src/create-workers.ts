import { repeatEvery, type BackgroundTask } from './tasks/background.ts';
import type { ChannelPool } from './orchestrator/channel-pool.ts';
import type { CodeContexts } from './code/code-contexts.ts';
import { NO_CLAIMS, rowClaims } from './sandboxes/claims.ts';
import { Convergence } from './sandboxes/convergence.ts';
import { MetricHistory } from './accounting/metric-history.ts';
import { ProcessKeeper } from './processes/process-keeper.ts';
import { tellOrphans } from './orphans/orphans.ts';
import type { EngineHealth } from './orchestrator/engine-health.ts';
import type { PortForwarder } from './published-ports/port-forwarder.ts';
import { RefusedVisitors } from './published-ports/refused-visitors.ts';
import { enforceLimits } from './sandboxes/enforce-limits.ts';
import { Reconciler } from './sandboxes/reconciler.ts';
import { removeStillborn } from './sandboxes/remove-stillborn.ts';
import { SnapshotWorker } from './snapshots/snapshot-worker.ts';
import { ensureMade } from './volumes/make-volume.ts';
import { VolumeKeeper } from './volumes/volume-keeper.ts';
import { WebhookWorker } from './webhooks/webhook-worker.ts';
import type { ServerParts } from './server-parts.ts';

const STILLBORN_CHECK_MS = 10 * 60_000;

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
    visitors: new RefusedVisitors(
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

/** What works in the background and is told of by handlers. */
export function createWorkers(parts: ServerParts, channels: ChannelPool) {
  const { database, snapshotStore: store, logger } = parts;
  return {
    snapshotWorker: new SnapshotWorker({ database, store, logger }),
    volumeKeeper: createVolumeKeeper(parts),
    processKeeper: new ProcessKeeper({ database, channels, logger }),
    metricHistory: createMetricHistory(parts),
    webhookWorker: createWebhookWorker(parts),
  };
}

export function createReconciler(
  parts: ServerParts,
  made: { readonly convergence: Convergence; readonly health: EngineHealth },
): Reconciler {
  const { database, orchestrator, logger } = parts;
  const { recoveryMs } = parts.restSettings;
  const tell = (signal: AbortSignal) => tellOrphans(parts, signal);
  return new Reconciler({ database, orchestrator, ...made, recoveryMs, tellOrphans: tell, logger });
}

export function createLimitCheck(
  { database, restSettings, logger }: ServerParts,
  convergence: Convergence,
): BackgroundTask {
  const check = () => enforceLimits(database, (sandboxId) => convergence.convergeSoon(sandboxId));
  return repeatEvery(restSettings.limitCheckMs, 'enforcing limits', check, logger);
}

/** None: they are kept for ever. */
export function createStillbornRemoval(
  { database, restSettings: { keepFailedMs }, logger }: ServerParts,
  convergence: Convergence,
): readonly BackgroundTask[] {
  if (keepFailedMs === null) return [];
  const remove = () =>
    removeStillborn(database, new Date(Date.now() - keepFailedMs).toISOString(), (sandboxId) =>
      convergence.convergeSoon(sandboxId),
    );
  return [repeatEvery(Math.min(keepFailedMs, STILLBORN_CHECK_MS), 'removing what never ran', remove, logger)];
}

function createVolumeKeeper({ database, volumeStore, restSettings, logger }: ServerParts): VolumeKeeper {
  const { defaultVolumeGib, volumeSampleMs } = restSettings;
  return new VolumeKeeper({ database, volumeStore, defaultVolumeGib, sampleMs: volumeSampleMs, logger });
}

function createMetricHistory({ database, orchestrator, restSettings, logger }: ServerParts): MetricHistory {
  const { metricSampleMs: sampleMs } = restSettings;
  return new MetricHistory({ database, orchestrator, sampleMs, logger });
}

function createWebhookWorker({ database, sealer, restSettings, logger }: ServerParts): WebhookWorker {
  const { outbound, webhooks: settings } = restSettings;
  return new WebhookWorker({ database, sealer, outbound, settings, logger });
}
