import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import { repeatEvery, type BackgroundTask } from './tasks/background.ts';
import { ChannelPool } from './orchestrator/channel-pool.ts';
import { CodeContexts } from './code/code-contexts.ts';
import type { CodeRunner } from './code/code-runner.ts';
import { CallShares } from './access/call-shares.ts';
import { authenticateNobody, type Authenticate } from './access/authenticate.ts';
import type { Identify } from './access/principal.ts';
import { RestDispatch } from './dispatch/rest-dispatch.ts';
import { Dispatch, type OnCallEnd } from './dispatch/dispatch.ts';
import { codeHandlers } from './handlers/code/rpc-code.ts';
import { commandHandlers } from './handlers/processes/rpc-commands.ts';
import { healthHandlers } from './handlers/server/health.ts';
import { metricsHandlers } from './handlers/sandboxes/rpc-metrics.ts';
import { sandboxHandlers } from './handlers/sandboxes/rpc-sandboxes.ts';
import { housekeeping } from './housekeeping.ts';
import { NO_CLAIMS, rowClaims } from './sandboxes/claims.ts';
import { EngineHealth } from './orchestrator/engine-health.ts';
import { HostStorage } from './accounting/host-storage.ts';
import { Lifecycle } from './sandboxes/lifecycle.ts';
import { Reconciler } from './sandboxes/reconciler.ts';
import { MetricHistory } from './accounting/metric-history.ts';
import { CallMetrics } from './accounting/call-metrics.ts';
import type { Orchestrator } from './orchestrator/orchestrator.ts';
import { ProcessKeeper } from './processes/process-keeper.ts';
import { PortForwarder } from './published-ports/port-forwarder.ts';
import { divertPreviews } from './transports/previews/divert-previews.ts';
import type { PreviewAddresses, PreviewPlace } from './handlers/previews/preview-place.ts';
import { Previews } from './transports/previews/previews.ts';
import type { SnapshotStore } from './orchestrator/snapshot-store.ts';
import type { VolumeStore } from './orchestrator/volume-store.ts';
import { enforceLimits } from './sandboxes/enforce-limits.ts';
import { recordRefusedCalls } from './dispatch/record-refusal.ts';
import { createRestHandlers } from './handlers/create-rest-handlers.ts';
import type { RestSettings } from './rest-settings.ts';
import type { Sealer } from './secrets/sealer.ts';
import { SnapshotWorker } from './snapshots/snapshot-worker.ts';
import type { SshPlace } from './handlers/server/capabilities.ts';
import type { Database } from './store/database.ts';
import { releaseAllKeys } from './store/idempotency.ts';
import { registerDocs } from './transports/docs/register-docs.ts';
import { registerLanding } from './transports/docs/register-landing.ts';
import {
  DEFAULT_CHANNEL_SETTINGS,
  registerChannel,
  type ChannelSettings,
} from './transports/channel/register-channel.ts';
import { ensureMade } from './volumes/make-volume.ts';
import { ConnectionShares } from './transports/http/connection-shares.ts';
import { createHttpServer } from './transports/http/create-http-server.ts';
import { Guard } from './transports/http/guard.ts';
import type { HttpLimits } from './transports/http/http-limits.ts';
import { registerHealth } from './transports/http/health.ts';
import { registerPrometheus } from './transports/http/prometheus.ts';
import type { McpExtras } from './transports/mcp/create-mcp-server.ts';
import { registerMcp } from './transports/mcp/register-mcp.ts';
import { isCallerGone } from './transports/http/caller-gone.ts';
import { RateLimiter } from './transports/http/rate-limiter.ts';
import { registerRest } from './transports/rest/register-rest.ts';
import { describeRestFailure } from './transports/http/rest-failure.ts';
import { VolumeKeeper } from './volumes/volume-keeper.ts';
import { registerRpc } from './transports/rpc/register-rpc.ts';

/** What may still be under way when the server is told to stop gets this long. */
const DRAIN_MS = 5000;
/** Of all connections, those that may be held open by channels and previews; the rest is for requests. */
const STREAMS_PART = 0.75;

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly limits: HttpLimits;
  readonly maxConcurrentCalls: number;
  /** Null: no previews. */
  readonly previews: PreviewPlace | null;
  /** Of one organization or user; null: as many as they like. */
  readonly requestsPerMinute: number | null;
}

export interface ServerParts {
  readonly options: ServerOptions;
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly volumeStore: VolumeStore;
  readonly snapshotStore: SnapshotStore;
  readonly codeRunner: CodeRunner;
  readonly authenticate: Authenticate;
  readonly identify: Identify;
  readonly sealer: Sealer;
  readonly restSettings: RestSettings;
  readonly channelSettings?: Partial<ChannelSettings>;
  /** Where the SSH gateway is, once it listens; absent: there is none. */
  readonly ssh?: () => SshPlace | null;
  /** How often it is looked whether WebSockets of previews may stay open. */
  readonly previewRecheckMs?: number;
  /** No other server uses the store. */
  readonly isAlone?: boolean;
  readonly logger: Logger;
  /** Absent: MCP offers our own tools and prompts alone. */
  readonly mcpExtras?: McpExtras;
}

export interface RunningServer {
  readonly url: string;
  readonly health: EngineHealth;
  /** Sandboxes run on. Resolves when nothing of the server is left. */
  close(): Promise<void>;
}

/** Puts the parts together and listens. What it is given still belongs to the caller. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { options, database, orchestrator, authenticate, logger } = parts;
  // Whoever repeats a call of a server that was killed need not wait until its lease runs out.
  if (parts.isAlone === true) await releaseAllKeys(database);
  const openChannel = (id: string, signal: AbortSignal) => orchestrator.openChannel(id, signal);
  const channels = new ChannelPool(openChannel);
  const ports = new PortForwarder(openChannel, logger);
  const health = new EngineHealth();
  const metrics = new CallMetrics();
  const codeContexts = new CodeContexts({ openChannel, database, sealer: parts.sealer, logger });
  const lifecycle = createLifecycle(parts, { channels, ports, codeContexts });
  const { recoveryMs } = parts.restSettings;
  const reconciler = new Reconciler({ database, orchestrator, lifecycle, health, recoveryMs, logger });
  const storage = new HostStorage({ orchestrator, database, logger });
  const dispatch = createDispatch(parts, { health, storage, metrics, lifecycle, channels });
  const http = createHttpServer({ guard: new Guard(options), limits: options.limits, logger });
  registerPages(http, health, authenticate);
  const rateLimiter = options.requestsPerMinute === null ? null : new RateLimiter(options.requestsPerMinute);
  const calls = new CallShares(options.maxConcurrentCalls);
  const streams = new CallShares(Math.ceil(options.limits.maxConnections * STREAMS_PART));
  registerRpc(http, { dispatch, authenticate, logger, calls, rateLimiter });
  registerPrometheus(http, { authenticate, database, health, storage, metrics });
  registerMcp(http, { dispatch, authenticate, logger, calls, rateLimiter, extras: parts.mcpExtras });
  const workers = createWorkers(parts, channels);
  const previews = previewAddresses(http, options.previews);
  const made = { storage, lifecycle, channels, codeContexts, health, metrics, previews };
  const rest = createRestDispatch(parts, { ...made, ...workers });
  const { maxBodyBytes, requestTimeoutMs: maxBodyPauseMs } = options.limits;
  registerRest(http, { dispatch: rest, maxBodyBytes, maxBodyPauseMs, rateLimiter, calls, logger });
  openChannels(http, parts, { rateLimiter, streams });
  await listen(http, parts, streams);
  const stop = new AbortController();
  const tasks: readonly BackgroundTask[] = [
    reconciler,
    storage.task(),
    ...Object.values(workers),
    ...housekeeping(parts),
    createLimitCheck(parts, lifecycle),
  ];
  const running = tasks.map((task) => task.run(stop.signal));
  return {
    url: urlOf(http),
    health,
    close: async () => {
      stop.abort(new Error('the server is shutting down'));
      await closeHttp(http);
      await Promise.race([lifecycle.close(), afterMs(DRAIN_MS)]);
      channels.close();
      codeContexts.close();
      await ports.closeAll();
      await Promise.all(running);
    },
  };
}

/** What anybody may read. */
function registerPages(http: FastifyInstance, health: EngineHealth, authenticate: Authenticate): void {
  registerHealth(http, health);
  registerDocs(http);
  registerLanding(http, { health, needsKey: authenticate !== authenticateNobody });
}

/** What JSON-RPC and MCP offer. */
function createDispatch(
  { database, orchestrator, codeRunner, logger }: ServerParts,
  made: {
    readonly health: EngineHealth;
    readonly storage: HostStorage;
    readonly metrics: CallMetrics;
    readonly lifecycle: Lifecycle;
    readonly channels: ChannelPool;
  },
): Dispatch {
  const handlers = {
    ...healthHandlers(made.health),
    ...sandboxHandlers(database, made.lifecycle),
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

/** What works in the background and is told of by handlers. */
function createWorkers(parts: ServerParts, channels: ChannelPool) {
  const { database, snapshotStore: store, logger } = parts;
  return {
    snapshotWorker: new SnapshotWorker({ database, store, logger }),
    volumeKeeper: createVolumeKeeper(parts),
    processKeeper: new ProcessKeeper({ database, channels, logger }),
    metricHistory: createMetricHistory(parts),
  };
}

function openChannels(
  http: FastifyInstance,
  parts: ServerParts,
  shares: { readonly rateLimiter: RateLimiter | null; readonly streams: CallShares },
): void {
  const { database, orchestrator, identify, logger } = parts;
  const settings = { ...DEFAULT_CHANNEL_SETTINGS, ...parts.channelSettings };
  registerChannel(http, { database, orchestrator, identify, ...shares, settings, logger });
}

function previewAddresses(http: FastifyInstance, place: PreviewPlace | null): PreviewAddresses | null {
  if (place === null) return null;
  // Asked for while the server listens, so its port is known.
  const port = () => place.port ?? (http.server.address() as AddressInfo).port;
  return { domain: place.domain, scheme: place.scheme, port };
}

/** Previews come last of all that answers requests, because they stand before all of it. */
async function listen(http: FastifyInstance, parts: ServerParts, streams: CallShares): Promise<void> {
  const { options, database, orchestrator, previewRecheckMs: recheckMs, logger } = parts;
  if (options.previews !== null) {
    const previews = new Previews({
      place: options.previews,
      database,
      orchestrator,
      streams,
      recheckMs,
      logger,
    });
    divertPreviews(http.server, previews);
    http.addHook('preClose', async () => await Promise.resolve(previews.close()));
  }
  // Last of all, so that it sees what previews take too.
  void new ConnectionShares(http.server, options.limits.maxConnections);
  // For this name, which has two addresses, the framework would make a second server that previews do not stand before.
  const host = options.host === 'localhost' ? '127.0.0.1' : options.host;
  await http.listen({ host, port: options.port });
}

function createLimitCheck(
  { database, restSettings, logger }: ServerParts,
  lifecycle: Lifecycle,
): BackgroundTask {
  const check = () => enforceLimits(database, (sandboxId) => lifecycle.converge(sandboxId));
  return repeatEvery(restSettings.limitCheckMs, 'enforcing limits', check, logger);
}

function createMetricHistory({ database, orchestrator, restSettings, logger }: ServerParts): MetricHistory {
  const { metricSampleMs: sampleMs } = restSettings;
  return new MetricHistory({ database, orchestrator, sampleMs, logger });
}

function createVolumeKeeper({ database, volumeStore, restSettings, logger }: ServerParts): VolumeKeeper {
  const { defaultVolumeGib, volumeSampleMs } = restSettings;
  return new VolumeKeeper({ database, volumeStore, defaultVolumeGib, sampleMs: volumeSampleMs, logger });
}

function createLifecycle(
  parts: ServerParts,
  made: {
    readonly channels: ChannelPool;
    readonly ports: PortForwarder;
    readonly codeContexts: CodeContexts;
  },
): Lifecycle {
  const { codeContexts, ...pools } = made;
  const { database, orchestrator, volumeStore, sealer, codeRunner, logger } = parts;
  const { recoveryMs, defaultVolumeGib, publishAddresses } = parts.restSettings;
  return new Lifecycle({
    ...pools,
    database,
    orchestrator,
    claims: parts.isAlone === true ? NO_CLAIMS : rowClaims(database),
    sealer,
    makeVolume: (volume) => ensureMade({ database, volumeStore, defaultVolumeGib }, volume),
    recoveryMs,
    publishAddresses,
    onRunEnded: (sandboxId) => {
      codeRunner.forget(sandboxId);
      codeContexts.forget(sandboxId);
    },
    logger,
  });
}

function createRestDispatch(
  parts: ServerParts,
  made: {
    readonly storage: HostStorage;
    readonly lifecycle: Lifecycle;
    readonly health: EngineHealth;
    readonly metrics: CallMetrics;
    readonly snapshotWorker: SnapshotWorker;
    readonly volumeKeeper: VolumeKeeper;
    readonly channels: ChannelPool;
    readonly codeContexts: CodeContexts;
    readonly processKeeper: ProcessKeeper;
    readonly metricHistory: MetricHistory;
    readonly previews: PreviewAddresses | null;
  },
): RestDispatch {
  const { database, orchestrator, volumeStore, codeRunner, sealer, restSettings, identify, logger } = parts;
  const { metrics, ...workers } = made;
  const handlers = createRestHandlers({
    database,
    orchestrator,
    volumeStore,
    ...workers,
    codeRunner,
    sealer,
    ssh: parts.ssh ?? (() => null),
    maxBodyBytes: parts.options.limits.maxBodyBytes,
    ...restSettings,
    logger,
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
      logger.debug({ operation, requestId, organization, durationMs, outcome }, 'call');
    },
  });
}

function outcomeOf(failure: unknown): string {
  if (failure === null) return 'success';
  if (isCallerGone(failure)) return 'cancelled';
  return PlatformError.is(failure) ? failure.code : 'internal';
}

function reportCalls(metrics: CallMetrics, logger: Logger): OnCallEnd {
  return ({ operation, requestId, namespace, durationMs, failure }) => {
    const outcome = outcomeOf(failure);
    metrics.count(operation, outcome, durationMs);
    logger.debug({ operation, requestId, namespace, durationMs, outcome }, 'call');
  };
}

/** Calls that do not end in time are cut off; what they began is finished or undone at the next start. */
async function closeHttp(http: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => http.server.closeAllConnections(), DRAIN_MS);
  await http.close();
  clearTimeout(timer);
}

function urlOf(http: FastifyInstance): string {
  // It listens on a TCP port, so its address is of this kind.
  const { address, port, family } = http.server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

async function afterMs(milliseconds: number): Promise<void> {
  await new Promise<void>((resolve) => void setTimeout(resolve, milliseconds).unref());
}
