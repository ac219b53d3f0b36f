import { setTimeout as delay } from 'node:timers/promises';
import type { SpareProcess } from '@svc/contract/orchestrator';
import type { Logger } from 'pino';
import { createCodeRunner } from './code/code-runner.ts';
import type { ServerConfig } from './config.ts';
import { authenticateAsDeveloper } from './access/authenticate.ts';
import { withCredentials } from './access/with-credentials.ts';
import { ensureSigningKey, resetSigningKey } from './access/signing-key.ts';
import { connectEngine, type ConnectedOrchestrator } from './orchestrator/connect-engine.ts';
import { connectNodes } from './orchestrator/connect-nodes.ts';
import type { OrchestratorPorts } from './orchestrator/ports.ts';
import { readNodes } from './orchestrator/read-nodes.ts';
import { alreadyRunning } from './host/already-running.ts';
import { lockDataFolder } from './host/data-folder-lock.ts';
import { loadPlans } from './accounting/load-plans.ts';
import { startServer } from './server.ts';
import type { Database } from './store/database.ts';
import type { ServerParts } from './server-parts.ts';
import { identifyDeveloper } from './access/principal.ts';
import type { RunningSshGateway, startSshGateway } from './transports/ssh/ssh-gateway.ts';
import { createOpenChannel } from './sandboxes/open-channel.ts';
import { openSealer } from './secrets/open-sealer.ts';
import { revokeAllKeys } from './store/signed-keys.ts';
import { findNode } from './store/find-node.ts';
import { openDatabase } from './store/open-database.ts';
import { noteStore } from './store/store-note.ts';
import { DASHBOARD_FOLDER, DashboardBuild } from './transports/dashboard/dashboard-build.ts';
import { openAdminSocket } from './transports/admin/admin-socket.ts';
import { gatherStatus } from './transports/admin/status.ts';
import type { OtelSettings } from './tracing/otel-settings.ts';
import { SpanExporter } from './tracing/span-exporter.ts';
import { tracedCalls } from './tracing/traced-calls.ts';
import { Tracer } from './tracing/tracer.ts';
import about from '../package.json' with { type: 'json' };

/** How long the web-facing process of a former supervisor may take to end. */
const FORMER_WEB_MS = 30_000;
const LOOK_MS = 20;
const EXPECT_TIMEOUT_MS = 10_000;

const dashboard = new DashboardBuild(DASHBOARD_FOLDER);

export interface RunningWeb {
  readonly url: string;
  close(): Promise<void>;
}

/** The web-facing process: the store, the transports and the way to the engine. @throws when it cannot start */
export async function startWeb(config: ServerConfig, logger: Logger): Promise<RunningWeb> {
  await using undo = new AsyncDisposableStack();
  const lock = await lockWeb(config);
  undo.defer(() => lock.release());
  const database = await openDatabase(config, logger);
  undo.defer(() => database.destroy());
  await noteStore(config);
  const engine = connectOrchestrator(config, database, logger);
  undo.defer(() => engine.close());
  const tracing = config.otel === null ? null : startTracing(config.otel, logger);
  undo.defer(async () => await tracing?.exporter.close());
  const ports = tracing === null ? engine.ports : tracedPorts(engine.ports);
  const { orchestrator, nodes } = ports;
  const openChannel = createOpenChannel(orchestrator, database);
  const onUsed = (id: string, process: SpareProcess) =>
    void orchestrator
      .expectProcess(id, process, AbortSignal.timeout(EXPECT_TIMEOUT_MS))
      .catch((error: unknown) => logger.debug({ err: error, sandboxId: id }, 'no interpreter is prepared'));
  const codeRunner = createCodeRunner({ openChannel, onUsed, logger });
  undo.defer(() => codeRunner.close());
  if (config.plansPath !== null) await loadPlans(database, config.plansPath);
  const credentials = await chooseAuthentication(config, database);
  const sealer = await openSealer(config.secretsKeyPath, database);
  const { options, isDev } = config;
  let gateway: RunningSshGateway | null = null;
  const server = await startServer({
    options,
    database,
    ...ports,
    codeRunner,
    ...credentials,
    sealer,
    restSettings: config.restSettings,
    ssh: () => gateway?.place ?? null,
    isAlone: config.databaseUrl === null,
    dashboard,
    logger,
    ...(tracing === null ? {} : { tracer: tracing.tracer }),
  });
  undo.defer(() => server.close());
  const { url, health } = server;
  if (config.ssh !== null) {
    const { serverFolder, ssh: settings } = config;
    const ssh = await loadSshGateway();
    const running = await ssh.startSshGateway({ database, orchestrator, serverFolder, settings, logger });
    undo.defer(() => running.close());
    gateway = running;
  }
  const startedAt = new Date().toISOString();
  const status = () => gatherStatus({ url, isDev, startedAt, database, orchestrator, nodes, health });
  const operator = { database, ...ports, gatherStatus: status, logger };
  const admin = await openAdminSocket(config.serverFolder, operator);
  undo.defer(() => admin.close());
  logger.info({ url, isDev, uid: process.getuid?.() }, 'the server listens');
  const parts = undo.move();
  return { url, close: () => parts.disposeAsync() };
}

function connectOrchestrator(
  { nodesPath, engineSocket }: ServerConfig,
  database: Database,
  logger: Logger,
): ConnectedOrchestrator {
  if (nodesPath === null) return connectEngine(engineSocket, logger);
  const nodeOfSandbox = async (id: string) => await findNode(database, id);
  return connectNodes(readNodes(nodesPath, logger), { nodeOfSandbox }, logger);
}

function tracedPorts(ports: OrchestratorPorts): OrchestratorPorts {
  const { orchestrator, imageStore, volumeStore, snapshotStore, nodes } = ports;
  return {
    orchestrator: tracedCalls(orchestrator),
    imageStore: tracedCalls(imageStore),
    volumeStore: tracedCalls(volumeStore),
    snapshotStore: tracedCalls(snapshotStore),
    nodes: tracedCalls(nodes),
  };
}

function startTracing(
  settings: OtelSettings,
  logger: Logger,
): { readonly tracer: Tracer; readonly exporter: SpanExporter } {
  const exporter = new SpanExporter(settings, about.version, logger);
  return { tracer: new Tracer(settings, exporter.add), exporter };
}

/** Only one supervisor runs at a time, but the web-facing process of the previous one may still be ending. */
async function lockWeb({ dataFolder, isSupervised }: ServerConfig): Promise<{ release(): Promise<void> }> {
  const deadline = performance.now() + (isSupervised ? FORMER_WEB_MS : 0);
  for (;;) {
    const lock = await lockDataFolder(dataFolder, 'web');
    if (lock !== undefined) return lock;
    if (performance.now() > deadline) throw alreadyRunning(dataFolder);
    await delay(LOOK_MS);
  }
}

/** Loads the gateway only where it is configured. Call it before root is dropped: its files may be unreadable later. */
export async function loadSshGateway(): Promise<{ readonly startSshGateway: typeof startSshGateway }> {
  return await import('./transports/ssh/ssh-gateway.ts');
}

/** Call it before root is dropped when the service user cannot read the checkout. */
export async function loadDashboard(): Promise<void> {
  await dashboard.find('index.html');
}

async function chooseAuthentication(
  { serverFolder, isDev, shouldResetKey }: ServerConfig,
  database: Database,
): Promise<Pick<ServerParts, 'authenticate' | 'identify' | 'signSession'>> {
  const signingKey = shouldResetKey
    ? await resetSigningKey(serverFolder)
    : await ensureSigningKey(serverFolder);
  if (shouldResetKey) await revokeAllKeys(database);
  if (isDev)
    return {
      authenticate: authenticateAsDeveloper,
      identify: identifyDeveloper(database),
      signSession: null,
    };
  return withCredentials(database, signingKey);
}
