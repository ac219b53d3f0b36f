import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { untilListening } from '@svc/contract/node-listen';
import type { FastifyInstance } from 'fastify';
import type { BackgroundTask } from './tasks/background.ts';
import { ChannelPool } from './orchestrator/channel-pool.ts';
import type { Convergence } from './sandboxes/convergence.ts';
import { CodeContexts } from './code/code-contexts.ts';
import { FairLimit } from './access/fair-limit.ts';
import { authenticateAsDeveloper } from './access/authenticate.ts';
import { housekeeping } from './housekeeping.ts';
import { EngineHealth } from './orchestrator/engine-health.ts';
import type { ServiceProblem } from './handlers/server/health.ts';
import { StoreHealth } from './store/store-health.ts';
import { HostStorage } from './accounting/host-storage.ts';
import { recordDenials } from './sandboxes/record-denials.ts';
import { CallMetrics } from './accounting/call-metrics.ts';
import { createOpenChannel } from './sandboxes/open-channel.ts';
import { PortForwarder } from './published-ports/port-forwarder.ts';
import { divertPreviews } from './transports/previews/divert-previews.ts';
import { isBelowLocalhost, type PreviewAddresses } from './handlers/previews/preview-place.ts';
import { Previews } from './transports/previews/previews.ts';
import { releaseAllKeys } from './store/idempotency.ts';
import { releaseAllDeliveries } from './store/webhook-deliveries.ts';
import { registerDashboard } from './transports/dashboard/register-dashboard.ts';
import { registerDocs } from './transports/docs/register-docs.ts';
import { registerLanding } from './transports/docs/register-landing.ts';
import {
  DEFAULT_CHANNEL_SETTINGS,
  registerChannel,
  type ChannelParts,
} from './transports/channel/register-channel.ts';
import { ConnectionLimit } from './transports/http/connection-limit.ts';
import { createHttpServer } from './transports/http/create-http-server.ts';
import { SandboxFiles } from './handlers/files/sandbox-files.ts';
import { Guard } from './transports/http/guard.ts';
import { registerHealth } from './transports/http/health.ts';
import { registerPrometheus } from './transports/http/prometheus.ts';
import { KeptOutput } from './transports/mcp/toolbox/kept-output.ts';
import type { Workbench } from './transports/mcp/toolbox/tool-context.ts';
import { registerMcp, type McpTransportParts } from './transports/mcp/register-mcp.ts';
import { RateLimiter } from './transports/http/rate-limiter.ts';
import { registerRest } from './transports/rest/register-rest.ts';
import { registerRpc } from './transports/rpc/register-rpc.ts';
import { isE2bHost, rewriteUrl } from './transports/e2b/wire/e2b-address.ts';
import { admitByE2bId } from './transports/e2b/admit-preview.ts';
import { SandboxTokens } from './transports/e2b/wire/sandbox-tokens.ts';
import { registerE2b, type E2bTransportParts } from './transports/e2b/register-e2b.ts';
import { createDispatch, createRestDispatch } from './create-dispatch.ts';
import {
  createConvergence,
  createLimitCheck,
  createReconciler,
  createFailedSandboxRemoval,
  createWorkers,
} from './create-workers.ts';
import type { ServerParts } from './server-parts.ts';

/** How long requests may take to end after the server was told to stop. */
const DRAIN_MS = 5000;
/** Of all connections, those that may be held open by channels and previews; the rest is for requests. */
const STREAMS_PART = 0.75;

export interface RunningServer {
  readonly url: string;
  readonly health: EngineHealth;
  readonly problem: ServiceProblem;
  /** Sandboxes run on. Resolves when nothing of the server is left. */
  close(): Promise<void>;
}

/** Assembles the server and listens. The caller still owns the parts that it passes. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { options, database, orchestrator, nodes, authenticate, logger } = parts;
  // The leases of a server that was killed: callers that repeat its calls need not wait until they run out.
  if (parts.isAlone === true) await Promise.all([releaseAllKeys(database), releaseAllDeliveries(database)]);
  const openChannel = createOpenChannel(orchestrator, database);
  const channels = new ChannelPool(openChannel);
  const ports = new PortForwarder(openChannel, logger);
  const health = new EngineHealth();
  const storeHealth = new StoreHealth(database, logger);
  const metrics = new CallMetrics();
  const codeContexts = new CodeContexts({ openChannel, database, sealer: parts.sealer, logger });
  const convergence = createConvergence(parts, { channels, ports, codeContexts });
  const reconciler = createReconciler(parts, { convergence, health });
  const storage = new HostStorage({ nodes, database, logger });
  const problem = () => storeHealth.problem ?? health.problem ?? storage.problem;
  const dispatch = createDispatch(parts, { health, problem, storage, metrics, convergence, channels });
  const http = openHttp(parts);
  const previews = previewAddresses(http, parts);
  registerPages(http, problem, parts);
  const rateLimiter = options.requestsPerMinute === null ? null : new RateLimiter(options.requestsPerMinute);
  const calls = new FairLimit(options.maxConcurrentCalls);
  const streams = new FairLimit(Math.ceil(options.limits.maxConnections * STREAMS_PART));
  registerRpc(http, { dispatch, authenticate, logger, calls, rateLimiter });
  const workers = createWorkers(parts, channels);
  const deliveries = workers.webhookWorker.outcomes;
  registerPrometheus(http, { authenticate, database, nodes, health, storage, metrics, deliveries });
  const made = { storage, convergence, channels, codeContexts, health, metrics, previews };
  const rest = createRestDispatch(parts, { ...made, ...workers });
  const { maxBodyBytes, requestTimeoutMs: maxBodyPauseMs } = options.limits;
  const files = new SandboxFiles({ database, channels, metrics });
  openTools(http, parts, { dispatch, rest, files, channels, calls, rateLimiter });
  registerRest(http, { dispatch: rest, maxBodyBytes, maxBodyPauseMs, rateLimiter, calls, logger });
  openChannels(http, parts, { rateLimiter, streams, code: { dispatch: rest, calls, maxBodyBytes } });
  openE2b(http, parts, { dispatch: rest, channels, openChannel, previews, rateLimiter, calls, streams });
  await listen(http, parts, { streams, previews });
  const stop = new AbortController();
  const tasks: readonly BackgroundTask[] = [
    reconciler,
    storeHealth,
    storage.task(),
    ...Object.values(workers),
    ...storeTasks(parts, convergence),
  ];
  const running = tasks.map((task) => task.run(stop.signal));
  return {
    url: urlOf(http),
    health,
    problem,
    close: async () => {
      stop.abort(new Error('the server is shutting down'));
      await closeHttp(http);
      await Promise.race([convergence.close(), afterMs(DRAIN_MS)]);
      channels.close();
      codeContexts.close();
      await ports.closeAll();
      await Promise.all(running);
    },
  };
}

/** Background tasks on rows of the store: retention, limits of runs, failed creates, denials. */
function storeTasks(parts: ServerParts, convergence: Convergence): readonly BackgroundTask[] {
  return [
    ...housekeeping(parts),
    createLimitCheck(parts, convergence),
    ...createFailedSandboxRemoval(parts, convergence),
    recordDenials(parts),
  ];
}

function openHttp({ options, logger, tracer }: ServerParts): FastifyInstance {
  const { limits } = options;
  const domain = options.previews?.domain ?? null;
  const guard = new Guard({ ...options, isFurtherHost: (host) => isE2bHost(domain, host) });
  const findUrl = (request: IncomingMessage) => rewriteUrl(domain, request);
  return createHttpServer({ guard, limits, logger, tracer: tracer ?? null, rewriteUrl: findUrl });
}

function openTools(
  http: FastifyInstance,
  { database, authenticate, logger, mcpExtras: extras }: ServerParts,
  made: Pick<McpTransportParts, 'dispatch' | 'calls' | 'rateLimiter'> &
    Pick<Workbench, 'rest' | 'files' | 'channels'>,
): void {
  const { rest, files, channels, ...shared } = made;
  const { dispatch } = shared;
  const workbench = { database, rest, files, dispatch, channels, keptOutput: new KeptOutput() };
  registerMcp(http, { ...shared, workbench, authenticate, logger, extras });
}

/** Pages and documents that need no credential. */
function registerPages(http: FastifyInstance, problem: ServiceProblem, parts: ServerParts): void {
  const { authenticate, dashboard = null } = parts;
  registerHealth(http, problem);
  registerDocs(http);
  registerLanding(http, { problem, needsKey: authenticate !== authenticateAsDeveloper, dashboard });
  if (dashboard !== null) registerDashboard(http, dashboard);
}

function openChannels(
  http: FastifyInstance,
  parts: ServerParts,
  made: Pick<ChannelParts, 'rateLimiter' | 'streams' | 'code'>,
): void {
  const { database, orchestrator, identify, logger } = parts;
  const settings = { ...DEFAULT_CHANNEL_SETTINGS, ...parts.channelSettings };
  registerChannel(http, { database, orchestrator, identify, ...made, settings, logger });
}

function openE2b(
  http: FastifyInstance,
  { database, sealer, logger, options }: ServerParts,
  made: Omit<
    E2bTransportParts,
    'database' | 'sealer' | 'maxBodyBytes' | 'maxBodyPauseMs' | 'logger' | 'arePortsPublic'
  >,
): void {
  const { limits, areE2bPortsPublic: arePortsPublic } = options;
  const { maxBodyBytes, requestTimeoutMs: maxBodyPauseMs } = limits;
  registerE2b(http, { ...made, arePortsPublic, database, sealer, maxBodyBytes, maxBodyPauseMs, logger });
}

function previewAddresses(http: FastifyInstance, parts: ServerParts): PreviewAddresses | null {
  const place = parts.options.previews;
  if (place === null) return null;
  // Asked for while the server listens, so its port is known.
  const port = () => place.port ?? (http.server.address() as AddressInfo).port;
  const isOpen = parts.signSession === null && isBelowLocalhost(place.domain);
  return { domain: place.domain, scheme: place.scheme, port, isOpen };
}

/** Previews are registered last, because they intercept requests before all other handlers. */
async function listen(
  http: FastifyInstance,
  parts: ServerParts,
  {
    streams,
    previews: addresses,
  }: { readonly streams: FairLimit; readonly previews: PreviewAddresses | null },
): Promise<void> {
  const { options, database, orchestrator, previewRecheckMs: recheckMs, logger } = parts;
  if (addresses !== null) {
    const previews = new Previews({
      place: addresses,
      database,
      orchestrator,
      streams,
      recheckMs,
      logger,
      admitById: admitByE2bId({ database, tokens: new SandboxTokens(parts.sealer) }),
    });
    divertPreviews(http.server, previews, (host) => isE2bHost(addresses.domain, host));
    http.addHook('preClose', async () => await Promise.resolve(previews.close()));
  }
  // Last of all, so that it sees what previews take too.
  const shares = new ConnectionLimit(http.server, options.limits.maxConnections);
  http.addHook('preClose', async () => await Promise.resolve(shares.dropSilent()));
  // For this name, which has two addresses, the framework would make a second server that previews do not stand before.
  const host = options.host === 'localhost' ? '127.0.0.1' : options.host;
  await http.listen({ host, port: options.port });
  await untilListening(http.server);
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
