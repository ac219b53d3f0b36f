import { once } from 'node:events';
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { dirname } from 'node:path';
import { env, argv, pid } from 'node:process';
import { pino, type Logger } from 'pino';
import { Sampler } from '../metrics/sampler.ts';
import { Sandboxes } from '../sandboxes/sandboxes.ts';
import { buildKit } from './build-kit.ts';
import { readConfig, type EngineConfig } from './config.ts';
import { demoBuilder } from './demo-images.ts';
import { createHttpServer, type Routes } from './http-server.ts';
import { operatorRoutes } from './image-routes.ts';
import { forgetPid, lockDataFolder, notePid } from './lock.ts';
import { createRelay } from './relay.ts';
import { rootSocketOf } from './root-socket.ts';
import { createRoutes, type Daemon } from './routes.ts';
import { raiseHostLimits } from './raise-host-limits.ts';
import { prepareRunFolder } from './run-folder.ts';

const VERSION = '0.1.0';
const TICK_MS = 1000;
/** Each sandbox is sampled once a tick, a share of them at a time. */
const SAMPLE_MS = 50;
/** What the first sandbox needs and the start does not is loaded this long after the start, when a server that waited for us has gone on. */
const LOAD_LATER_MS = 1000;

/** Runs the engine until a signal ends it. Sandboxes keep running; the next engine takes them up again. */
async function main(): Promise<void> {
  const config = readConfig(argv.slice(2), env);
  const logger = pino(
    { level: config.logLevel, base: { pid }, serializers: { error: pino.stdSerializers.err } },
    pino.destination({ fd: 2, sync: true }),
  );
  const stop = stopSignal();
  const close = await serve(config, logger, stop).catch((error: unknown) => {
    // Nothing that it started runs, and the next engine takes up the rest.
    if (stop.aborted) logger.info('stopped before it was ready');
    else logger.fatal({ error: error instanceof Error ? error.message : error }, 'the engine cannot start');
    process.exit(stop.aborted ? 0 : 1);
  });
  if (!stop.aborted) await once(stop, 'abort');
  await close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
}

/** Returns how to stop it, once it serves. */
async function serve(config: EngineConfig, logger: Logger, stop: AbortSignal): Promise<() => Promise<void>> {
  const startedAt = new Date().toISOString();
  // SAFETY: root inside a sandbox passes through these folders to its own root file system; it can list neither.
  await mkdir(config.dataFolder, { recursive: true, mode: 0o711 });
  await lockDataFolder(config.instance, config.dataFolder);
  await notePid(config.dataFolder).catch((error: unknown) =>
    logger.warn({ error }, '`svc engine stop` will not find this engine'),
  );
  await prepareRunFolder(config.runFolder);
  raiseHostLimits(logger);
  const kit = await buildKit(config, logger, (imageId) => running.isImageInUse(imageId), stop);
  const running: Sandboxes = new Sandboxes(kit, { warm: config.warm });
  const sampler = new Sampler(kit);
  await kit.images.recover();
  stop.throwIfAborted();
  await running.recover();
  const capabilities = () => ({
    version: VERSION,
    startedAt,
    bootId: kit.bootId,
    defaultIsolation: kit.defaultIsolation,
    runtimes: kit.probes,
    cgroup: kit.cgroups.layout.version === 1 ? ('v1' as const) : ('v2' as const),
    sandboxes: running.list().length,
  });
  const buildDemo = demoBuilder(config, kit.images);
  const daemon = { kit, sandboxes: running, sampler, capabilities, logger, buildDemo };
  const servers = await listen(daemon, config);
  kit.events.add('engine_started', null);
  const timers = [
    setInterval(() => running.enforceDeadlines(), TICK_MS),
    setInterval(() => sampler.sampleShare(running.list(), SAMPLE_MS / TICK_MS), SAMPLE_MS),
    setTimeout(loadTheRest, LOAD_LATER_MS),
  ];
  logger.info(
    { socket: config.socketPath, isolation: kit.defaultIsolation, sandboxes: running.list().length },
    'ready',
  );
  return async () => {
    for (const timer of timers) clearInterval(timer);
    for (const server of servers) server.close().closeAllConnections();
    await running.close();
    await kit.network.close();
    await kit.rootfs.close();
    await kit.volumes.close();
    await kit.mounts.hostCalls.close();
    await forgetPid(config.dataFolder);
    logger.info('stopped; sandboxes keep running');
  };
}

function loadTheRest(): void {
  // Whoever needs it fails with the same error, and says so.
  import('@svc/contract/check-spec').catch(() => undefined);
}

/**
 * Root's own socket does everything. When another user is named, that user gets a socket of its own, without what reads files of the
 * host by path: whoever takes over the web-facing process does not become root.
 */
async function listen(daemon: Daemon, config: EngineConfig): Promise<readonly Server[]> {
  const { socketPath, socketOwner } = config;
  const rootSocketPath = rootSocketOf(socketPath);
  await rm(rootSocketPath, { force: true });
  const everything = { ...createRoutes(daemon), ...operatorRoutes(daemon) };
  if (socketOwner === null) return [await listenAt(socketPath, everything, daemon)];
  const servers = [
    await listenAt(rootSocketPath, everything, daemon),
    await listenAt(socketPath, createRoutes(daemon), daemon),
  ];
  await chown(socketPath, socketOwner.uid, socketOwner.gid);
  return servers;
}

async function listenAt(path: string, routes: Routes, daemon: Daemon): Promise<Server> {
  const server = createHttpServer(routes, createRelay(daemon.sandboxes), daemon.logger);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(path, resolve);
  await promise;
  // SAFETY: whoever may connect here commands root's engine.
  await chmod(path, 0o600);
  return server;
}

/** Aborts when a signal asks us to stop. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  process.on('SIGTERM', () => stop.abort());
  process.on('SIGINT', () => stop.abort());
  return stop.signal;
}

await main();
