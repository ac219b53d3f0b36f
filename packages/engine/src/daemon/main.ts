import { once } from 'node:events';
import { chmod, lchown, mkdir, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import { flushCompileCache } from 'node:module';
import { dirname } from 'node:path';
import { env, argv, pid } from 'node:process';
import { untilListening } from '@svc/contract/node-listen';
import { PlatformError } from '@svc/contract/errors';
import { pino, type Logger } from 'pino';
import { FairWeights } from '../cgroup/fair-weights.ts';
import { LOOK_MS } from '../runtime/quiet-places.ts';
import { outweighSandboxes, takeOwnShare } from '../cgroup/own-share.ts';
import { ProcessLog } from '../logs/process-log.ts';
import { Sampler } from '../metrics/sampler.ts';
import type { SessionRelay } from '../guest/session-relay.ts';
import type { LiveDisks } from '../rootfs/live-disk.ts';
import { Sandboxes } from '../sandboxes/sandboxes.ts';
import { buildKit, type HostKit } from './build-kit.ts';
import { readConfig, type EngineConfig } from './config.ts';
import { demoBuilder } from './demo-images.ts';
import { createHttpServer, type HttpServerOptions, type Routes, type UpgradeHandler } from './http-server.ts';
import { operatorRoutes } from './image-routes.ts';
import { collectImages } from './collect-images.ts';
import { forgetPid, lockDataFolder, notePid } from './lock.ts';
import { createRelay } from './relay.ts';
import { createRoutes, type Daemon } from './routes.ts';
import { raiseHostLimits } from './raise-host-limits.ts';
import { repeat } from './repeat.ts';
import { prepareRunFolder, releaseRunFolder } from './run-folder.ts';

const VERSION = '0.1.0';
const STDERR = 2;
const TICK_MS = 1000;
/** Each sandbox is sampled once a tick, two shares of them at a look. */
const SAMPLE_SHARE = LOOK_MS / TICK_MS / 2;
/** At every second look: who of the sandboxes uses the processors. */
const WEIGHED_EVERY = 2;
/** How often disks are looked for that nobody alive has frozen. */
const THAW_MS = 5000;
/** What the first sandbox needs and the start does not is loaded this long after the start, when a server that waited for us has gone on. */
const LOAD_LATER_MS = 1000;

/** Runs the engine until a signal ends it. Sandboxes keep running; the next engine takes them up again. */
async function main(): Promise<void> {
  // The users of sandboxes pass folders of ours; what is secret says so itself. A hardened root has a stricter one.
  process.umask(0o022);
  const config = readOrRefuse();
  const logger = createLogger(config.logLevel);
  const stop = stopSignal();
  const close = await serve(config, logger, stop).catch((error: unknown) => {
    // Nothing that it started runs, and the next engine takes up the rest.
    if (stop.aborted) logger.info('stopped before it was ready');
    else refuse(logger, error);
    process.exit(stop.aborted ? 0 : exitCodeOf(error));
  });
  if (!stop.aborted) await once(stop, 'abort');
  await close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
}

function readOrRefuse(): EngineConfig {
  try {
    return readConfig(argv.slice(2), env);
  } catch (error) {
    refuse(createLogger('info'), error);
    return process.exit(exitCodeOf(error));
  }
}

function createLogger(level: string): Logger {
  return pino(
    { level, base: { pid }, serializers: { error: pino.stdSerializers.err } },
    new ProcessLog(STDERR),
  );
}

function refuse(logger: Logger, error: unknown): void {
  logger.fatal({ error: error instanceof Error ? error.message : error }, 'the engine cannot start');
}

/** 2: the same options would be refused again. */
function exitCodeOf(error: unknown): number {
  return PlatformError.is(error, 'invalid_request') || PlatformError.is(error, 'isolation_unavailable')
    ? 2
    : 1;
}

/** A host that lacks the class that the operator wants for sandboxes must not pretend to have it. */
function requireIsolation({ isolation }: EngineConfig, { missing }: HostKit): void {
  const reason = isolation === 'auto' ? undefined : missing.get(isolation);
  if (reason === undefined) return;
  const hint = `--isolation ${isolation}: this host has no such class (${reason}); see \`svc doctor\`, or leave the option out`;
  throw new PlatformError('isolation_unavailable', hint);
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
  const weight = takeOwnShareOrSay(logger);
  const kit = await buildKit(config, logger, (...image) => running.isImageInUse(...image), stop);
  requireIsolation(config, kit);
  const running: Sandboxes = new Sandboxes(kit, config);
  const sampler = new Sampler(kit);
  const thawing = await keepThawed(kit.liveDisks, logger);
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
    space: kit.space.view(),
  });
  const buildDemo = demoBuilder(config, kit.images);
  const daemon = { kit, sandboxes: running, sampler, capabilities, logger, buildDemo };
  const servers = await listen(daemon, config, kit.sessionRelay);
  kit.events.add('engine_started', null);
  kit.space.onTurn = (isShort) => kit.events.add(isShort ? 'space_short' : 'space_back', null);
  const sample = (used: number) => sampler.sampleShare(() => running.list(), SAMPLE_SHARE, used);
  const processors = shareProcessors(kit, weight, sample, logger);
  const timers = [
    thawing,
    repeat(() => running.enforceDeadlines(), TICK_MS, logger),
    repeat(() => kit.sessionRelay.look(), TICK_MS, logger),
    setTimeout(() => void loadTheRest(), LOAD_LATER_MS),
    ...collectImages(kit.images, config.keepImagesMs, logger),
  ];
  logger.info(
    { socket: config.socketPath, isolation: kit.defaultIsolation, sandboxes: running.list().length },
    'ready',
  );
  return async () => {
    for (const timer of timers) clearInterval(timer);
    kit.space.stop();
    processors[Symbol.dispose]();
    for (const server of servers) server.close().closeAllConnections();
    await running.close();
    await closeKit(kit);
    await releaseRunFolder(config.runFolder);
    await forgetPid(config.dataFolder);
    logger.info('stopped; sandboxes keep running');
  };
}

async function closeKit(kit: HostKit): Promise<void> {
  const { shortWaits, sessionRelay, network, rootfs, volumes, mounts } = kit;
  shortWaits?.close();
  sessionRelay.close();
  await network.close();
  await rootfs.close();
  await volumes.close();
  await mounts.hostCalls.close();
}

/** First of all: whoever writes to a disk that was left frozen waits. And later: a backup may be killed as an engine may. */
async function keepThawed(liveDisks: LiveDisks, logger: Logger): Promise<NodeJS.Timeout> {
  await liveDisks.recover();
  return setInterval(() => {
    liveDisks.recover().catch((error: unknown) => logger.error({ error }, 'a disk may have stayed frozen'));
  }, THAW_MS).unref();
}

/**
 * Who goes first on the processors, and where, and what each uses, until it is disposed of. All of it at the same moments and from one
 * reading of what all use together: to wake up costs more than to look.
 */
function shareProcessors(
  { cgroups, quietPlaces }: HostKit,
  weight: number | null,
  sample: (used: number) => void,
  logger: Logger,
): Disposable {
  const weights = new FairWeights(cgroups, weight);
  let looks = 0;
  const look = () => {
    const used = cgroups.cpuMicroseconds('.');
    if (looks++ % WEIGHED_EVERY === 0) weights.look(used);
    quietPlaces.look(performance.now(), used);
    sample(used);
    // Twice in smaller parts: what came in meanwhile does not wait for all of it.
    setImmediate(() => sample(used));
  };
  const timer = repeat(look, LOOK_MS, logger);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      weights.release();
      quietPlaces.release();
    },
  };
}

/** Before anything is started, so that it is there too. Returns what all sandboxes together weigh. */
function takeOwnShareOrSay(logger: Logger): number | null {
  try {
    takeOwnShare();
    return outweighSandboxes();
  } catch (error) {
    logger.warn(
      { error },
      'the engine has no share of the processor of its own: busy sandboxes slow it down',
    );
    return null;
  }
}

async function loadTheRest(): Promise<void> {
  // A failure is not reported here: the first request that needs the module meets the same error and reports it.
  await import('@svc/contract/check-spec').catch(() => undefined);
  // Not at the end alone: an engine that is killed would leave all the compiling to the next one.
  flushCompileCache();
}

/**
 * Root's own socket does everything. The main one is without what reads files of the host by path: it belongs to root until a server
 * gives it to its user, and whoever takes over the web-facing process does not become root.
 */
async function listen(
  daemon: Daemon,
  { socketPath, socketOwner }: EngineConfig,
  sessionRelay: SessionRelay,
): Promise<readonly Server[]> {
  const routes = createRoutes(daemon);
  const relay = createRelay(daemon.sandboxes, sessionRelay);
  const options = {
    logger: daemon.logger,
    explainByDisk: (error: unknown) => daemon.kit.space.explain(error),
  };
  const servers = [
    await listenAt(rootSocketOf(socketPath), { ...routes, ...operatorRoutes(daemon.kit) }, relay, options),
    await listenAt(socketPath, routes, relay, options),
  ];
  // SAFETY: in the data folder, which is root's.
  if (socketOwner !== null) await lchown(socketPath, socketOwner.uid, socketOwner.gid);
  return servers;
}

async function listenAt(
  path: string,
  routes: Routes,
  relay: UpgradeHandler,
  options: HttpServerOptions,
): Promise<Server> {
  const server = createHttpServer(routes, relay, options);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  server.listen(path);
  await untilListening(server);
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

/** Where root reaches an engine whose main socket belongs to another user: `engine.sock` → `engine-root.sock`. */
function rootSocketOf(socketPath: string): string {
  return socketPath.replace(/(\.sock)?$/, '-root.sock');
}
