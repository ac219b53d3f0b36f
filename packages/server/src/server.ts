import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { PlatformError } from '@svc/contract';
import type { Logger } from 'pino';
import { ChannelPool } from './channels/channel-pool.ts';
import type { CodeRunner } from './code/code-runner.ts';
import type { Authenticate } from './dispatch/authenticate.ts';
import { Dispatch, type OnCallEnd } from './dispatch/dispatch.ts';
import { codeHandlers } from './handlers/code.ts';
import { commandHandlers } from './handlers/commands.ts';
import { healthHandlers } from './handlers/health.ts';
import { metricsHandlers } from './handlers/metrics.ts';
import { sandboxHandlers } from './handlers/sandboxes.ts';
import { EngineHealth } from './lifecycle/engine-health.ts';
import { Lifecycle } from './lifecycle/lifecycle.ts';
import { Reconciler } from './lifecycle/reconciler.ts';
import { CallMetrics } from './observability/metrics.ts';
import type { Orchestrator } from './orchestrator/orchestrator.ts';
import { PortForwarder } from './ports/port-forwarder.ts';
import type { Database } from './store/database.ts';
import { createHttpServer } from './transports/http/create-http-server.ts';
import { Guard } from './transports/http/guard.ts';
import type { HttpLimits } from './transports/http/http-limits.ts';
import { registerHealth } from './transports/http/health.ts';
import { registerPrometheus } from './transports/http/prometheus.ts';
import { registerMcp } from './transports/mcp/register-mcp.ts';
import { registerRpc } from './transports/rpc/register-rpc.ts';

/** What may still be under way when the server is told to stop gets this long. */
const DRAIN_MS = 5000;

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly limits: HttpLimits;
  readonly maxConcurrentCalls: number;
}

export interface ServerParts {
  readonly options: ServerOptions;
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly codeRunner: CodeRunner;
  readonly authenticate: Authenticate;
  readonly logger: Logger;
  /** MCP also offers what the official conformance suite asks for. */
  readonly hasConformanceFixtures?: boolean;
}

export interface RunningServer {
  readonly url: string;
  readonly health: EngineHealth;
  /** Sandboxes run on. Resolves when nothing of the server is left. */
  close(): Promise<void>;
}

/** Puts the parts together and listens. What it is given still belongs to the caller. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { options, database, orchestrator, codeRunner, authenticate, logger } = parts;
  const openChannel = (id: string, signal: AbortSignal) => orchestrator.openChannel(id, signal);
  const channels = new ChannelPool(openChannel);
  const ports = new PortForwarder(openChannel, logger);
  const health = new EngineHealth();
  const metrics = new CallMetrics();
  const onRunEnded = (sandboxId: string) => codeRunner.forget(sandboxId);
  const lifecycle = new Lifecycle({ database, orchestrator, channels, ports, onRunEnded, logger });
  const reconciler = new Reconciler({ database, orchestrator, lifecycle, health, logger });
  const dispatch = new Dispatch(
    {
      ...healthHandlers(health),
      ...sandboxHandlers(lifecycle),
      ...metricsHandlers(database, orchestrator),
      ...codeHandlers(database, codeRunner),
      ...commandHandlers(database, channels),
    },
    reportCalls(metrics, logger),
  );
  const http = createHttpServer({ guard: new Guard(options), limits: options.limits, logger });
  registerHealth(http, health);
  const { maxConcurrentCalls } = options;
  const { hasConformanceFixtures = false } = parts;
  registerRpc(http, { dispatch, authenticate, logger, maxConcurrentCalls });
  registerPrometheus(http, { authenticate, database, health, metrics });
  registerMcp(http, { dispatch, authenticate, logger, maxConcurrentCalls, hasConformanceFixtures });
  await http.listen({ host: options.host, port: options.port });
  const stop = new AbortController();
  const following = reconciler.run(stop.signal);
  return {
    url: urlOf(http),
    health,
    close: async () => {
      stop.abort(new Error('the server is shutting down'));
      await closeHttp(http);
      await Promise.race([lifecycle.whenIdle(), afterMs(DRAIN_MS)]);
      channels.close();
      await ports.closeAll();
      await following;
    },
  };
}

function reportCalls(metrics: CallMetrics, logger: Logger): OnCallEnd {
  return ({ operation, requestId, namespace, durationMs, failure }) => {
    const outcome = failure === null ? 'success' : PlatformError.is(failure) ? failure.code : 'internal';
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
