import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { env, argv, pid } from 'node:process';
import { PlatformError } from '@svc/contract/errors';
import { pino, type Logger } from 'pino';
import { TlsCredentials } from '../client/tls-credentials.ts';
import { ProcessLog } from '../logs/process-log.ts';
import { Sampler } from '../metrics/sampler.ts';
import type { LiveDisks } from '../rootfs/live-disk.ts';
import { Sandboxes } from '../sandboxes/sandboxes.ts';
import { buildKit, type HostKit } from './build-kit.ts';
import { readConfig, type EngineConfig } from './config.ts';
import { demoBuilder } from './demo-images.ts';
import { collectImages } from './collect-images.ts';
import { forgetPid, lockDataFolder, notePid } from './lock.ts';
import { listen } from './listen.ts';
import { raiseHostLimits } from './raise-host-limits.ts';
import { repeat } from './repeat.ts';
import { prepareRunFolder, releaseRunFolder } from './run-folder.ts';

const VERSION = '0.1.0';
const STDERR = 2;
const TICK_MS = 1000;
/** Sandboxes are sampled in turn, so that each one is sampled once per tick. */
const SAMPLE_MS = 100;
/** How often disks are checked for a freeze whose process has ended. */
const THAW_MS = 5000;
/** Delay before modules are loaded that only the first sandbox needs; a server that waited for the engine continues first. */
const LOAD_LATER_MS = 1000;

/** Runs the engine until a signal ends it. Sandboxes keep running; the next engine adopts them. */
async function main(): Promise<void> {
  // Users of sandboxes pass through our folders; secret files have stricter modes. A hardened root has a stricter umask.
  process.umask(0o022);
  const config = readOrRefuse();
  const logger = createLogger(config.logLevel);
  const stop = stopSignal();
  const close = await serve(config, logger, stop).catch((error: unknown) => {
    // Nothing that it started is running, and the next engine adopts the rest.
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

/** 2: a retry with the same options would fail again. */
function exitCodeOf(error: unknown): number {
  return PlatformError.is(error, 'invalid_request') || PlatformError.is(error, 'isolation_unavailable')
    ? 2
    : 1;
}

/** Refuses to start when the host lacks the class that the operator requires for sandboxes. */
function requireIsolation({ isolation }: EngineConfig, { missing }: HostKit): void {
  const reason = isolation === 'auto' ? undefined : missing.get(isolation);
  if (reason === undefined) return;
  const hint = `--isolation ${isolation}: this host has no such class (${reason}); see \`svc doctor\`, or leave the option out`;
  throw new PlatformError('isolation_unavailable', hint);
}

/** @returns the function that stops it, once it serves */
async function serve(config: EngineConfig, logger: Logger, stop: AbortSignal): Promise<() => Promise<void>> {
  const startedAt = new Date().toISOString();
  const credentials = readCredentials(config, logger);
  // SAFETY: root in a sandbox traverses these folders to reach its own root file system; it can list neither.
  await mkdir(config.dataFolder, { recursive: true, mode: 0o711 });
  await lockDataFolder(config.instance, config.dataFolder);
  await notePid(config.dataFolder).catch((error: unknown) =>
    logger.warn({ error }, '`svc engine stop` will not find this engine'),
  );
  await prepareRunFolder(config.runFolder);
  raiseHostLimits(logger);
  const kit = await buildKit(config, logger, (...image) => running.isImageInUse(...image), stop);
  requireIsolation(config, kit);
  const running: Sandboxes = new Sandboxes(kit, config);
  const sampler = new Sampler(kit);
  const thawTimer = await startThawing(kit.liveDisks, logger);
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
  const stopListening = await listen(daemon, config, credentials);
  kit.events.add('engine_started', null);
  kit.space.onTurn = (isShort) => kit.events.add(isShort ? 'space_short' : 'space_back', null);
  const timers = [
    thawTimer,
    repeat(() => sampler.sampleShare(() => running.list(), SAMPLE_MS / TICK_MS), SAMPLE_MS, logger),
    repeat(() => running.enforceDeadlines(), TICK_MS, logger),
    setTimeout(() => void preloadSpecCheck(), LOAD_LATER_MS),
    ...collectImages(kit.images, config.keepImagesMs, logger),
  ];
  logger.info(
    { socket: config.socketPath, isolation: kit.defaultIsolation, sandboxes: running.list().length },
    'ready',
  );
  return async () => {
    for (const timer of timers) clearInterval(timer);
    kit.space.stop();
    stopListening();
    await running.close();
    await closeKit(kit);
    await releaseRunFolder(config.runFolder);
    await forgetPid(config.dataFolder);
    logger.info('stopped; sandboxes keep running');
  };
}

/** Null: the engine listens on its sockets alone. */
function readCredentials({ tlsFiles }: EngineConfig, logger: Logger): TlsCredentials | null {
  if (tlsFiles === null) return null;
  return new TlsCredentials(tlsFiles, (error) =>
    logger.error({ error }, 'the replaced certificate cannot be used; the one before is'),
  );
}

async function closeKit(kit: HostKit): Promise<void> {
  const { network, rootfs, volumes, mounts } = kit;
  await network.close();
  await rootfs.close();
  await volumes.close();
  await mounts.hostCalls.close();
}

/** Thaws disks first of all, because writes to a frozen disk block, and periodically: a backup may be killed as well as an engine. */
async function startThawing(liveDisks: LiveDisks, logger: Logger): Promise<NodeJS.Timeout> {
  await liveDisks.recover();
  return setInterval(() => {
    liveDisks.recover().catch((error: unknown) => logger.error({ error }, 'a disk may have stayed frozen'));
  }, THAW_MS).unref();
}

async function preloadSpecCheck(): Promise<void> {
  // A failure is not reported here: the first request that needs the module meets the same error and reports it.
  await import('@svc/contract/check-spec').catch(() => undefined);
  // Not only at the end: a killed engine would leave all compiling to the next one.
  flushCompileCache();
}

/** Aborts when a signal asks us to stop. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  process.on('SIGTERM', () => stop.abort());
  process.on('SIGINT', () => stop.abort());
  return stop.signal;
}

await main();
