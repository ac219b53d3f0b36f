import { flushCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { ProcessLog } from '@svc/engine/process-log';
import type { Logger } from 'pino';
import { readConfig, type ServerConfig } from './config.ts';
import { alreadyRunning } from './host/already-running.ts';
import { isWorldReadable } from './host/is-world-readable.ts';
import { becomeUser, findIdentity, type Identity } from './host/drop-privileges.ts';
import { serverUser } from './host/installation-user.ts';
import { lockDataFolder } from './host/data-folder-lock.ts';
import { EXIT } from './host/exit-codes.ts';
import { explainStart } from './host/explain-start.ts';
import { forgetPid, writePid } from './host/pid-file.ts';
import { prepareFolders } from './host/prepare-folders.ts';
import { PULSE, READY, runSupervisor, SERVE, startWebProcess } from './host/supervisor.ts';

const STDERR = 2;

// Not imported: as a module it opens standard input to export it, in each of our processes.
const { argv, env } = process;

/** A sample of the lazily loaded files: one of ours and one of a package. */
const LOADED_LATER = [
  new URL('./transports/mcp/mcp-endpoint.ts', import.meta.url).href,
  import.meta.resolve('@modelcontextprotocol/sdk/server/index.js'),
].map((url) => fileURLToPath(url));
/** Delay after the start until modules that only requests need are loaded, so that they do not slow the start down. */
const LOAD_LATER_MS = 1000;

/** `svc server start` runs this. As root it supervises; otherwise, and as the supervisor's child, it serves. */
async function main(args: readonly string[]): Promise<number> {
  // The user of the web-facing process must be able to enter folders that root makes; secret files set their own mode.
  process.umask(0o022);
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort());
  let config: ServerConfig | undefined;
  try {
    config = readConfig(args, env);
    if (config.isSupervised) return await serveSupervised(config, stop);
    if (process.getuid?.() === 0) return await supervise(config, args, stop.signal);
    return await serveAlone(config, stop.signal);
  } catch (error) {
    return await reportFailure(error, config);
  }
}

async function supervise(config: ServerConfig, args: readonly string[], stop: AbortSignal): Promise<number> {
  const owner = ownerOf(config);
  // Started first, because loading its modules takes longer than the rest of the start.
  const web = startWebProcess([...args, '--run-as', `${owner.uid}:${owner.gid}`]);
  try {
    const logger = await createLogger(config.logLevel);
    await prepareFolders(config, owner);
    return await alone(config, () => runSupervisor(config, owner, web, stop, logger));
  } finally {
    web.child.kill();
  }
}

function ownerOf(config: ServerConfig): Identity {
  return config.runAs === null ? serverUser(config) : findIdentity(config.runAs);
}

/** A server that is not started by root has no engine of its own. */
async function serveAlone(config: ServerConfig, stop: AbortSignal): Promise<number> {
  await prepareFolders(config, null);
  const logger = await createLogger(config.logLevel);
  return await alone(config, () => serve(config, stop, logger));
}

async function serveSupervised(config: ServerConfig, stop: AbortController): Promise<number> {
  // A server without its supervisor stops.
  process.on('disconnect', () => stop.abort());
  const mayServe = watchSupervisor(stop.signal);
  const { loadDashboard, loadSshGateway } = await import('./web.ts');
  // What is left for later must be loaded now when the program is where the service user cannot read.
  const { loadMcp } = await import('./transports/mcp/register-mcp.ts');
  if (!LOADED_LATER.every(isWorldReadable)) {
    await loadMcp();
    await loadDashboard();
    (await import('@svc/contract')).loadCompiler();
    // The framework loads the rest of itself when it is first used.
    (await import('fastify')).default();
  }
  if (config.ssh !== null) await loadSshGateway();
  if (config.databaseUrl !== null) await (await import('./store/open-database.ts')).loadPostgres();
  const logger = await createLogger(config.logLevel);
  flushCompileCache();
  becomeUser(ownerOf(config));
  await mayServe;
  if (stop.signal.aborted) return EXIT.stopped;
  return await serve(config, stop.signal, logger, () => process.send?.(READY));
}

/** Answers the supervisor's pulses, and resolves when it allows serving or the process is to stop. */
async function watchSupervisor(stop: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.on('message', (message) => {
    if (message === PULSE) process.send?.(PULSE);
    if (message === SERVE) resolve();
  });
  stop.addEventListener('abort', () => resolve(), { once: true });
  await promise;
}

async function serve(
  config: ServerConfig,
  stop: AbortSignal,
  logger: Logger,
  onReady: () => void = () => undefined,
): Promise<number> {
  const { startWeb } = await import('./web.ts');
  const web = await startWeb(config, logger);
  onReady();
  const { loadCompiler } = await import('@svc/contract');
  const later = setTimeout(loadCompiler, LOAD_LATER_MS);
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  clearTimeout(later);
  logger.info('the server is shutting down; sandboxes run on');
  await web.close();
  return EXIT.stopped;
}

/** Runs `work` with the lock of the data folder, so that it has one server. */
async function alone({ dataFolder }: ServerConfig, work: () => Promise<number>): Promise<number> {
  const lock = await lockDataFolder(dataFolder, 'server');
  if (lock === undefined) throw alreadyRunning(dataFolder);
  await writePid(dataFolder);
  try {
    return await work();
  } finally {
    await forgetPid(dataFolder);
    await lock.release();
  }
}

async function reportFailure(error: unknown, config: ServerConfig | undefined): Promise<number> {
  const known = explainStart(error, config);
  if (known !== undefined && process.stderr.isTTY) {
    // A person has just typed the command.
    process.stderr.write(`error: ${known.message}\n`);
    return known.exitCode;
  }
  const logger = await createLogger(config?.logLevel ?? 'info');
  if (known === undefined) logger.fatal({ err: error }, 'the server cannot start');
  else logger.fatal(known.message);
  return known?.exitCode ?? EXIT.failed;
}

async function createLogger(level: string): Promise<Logger> {
  const { pino } = await import('pino');
  return pino({ level }, new ProcessLog(STDERR));
}

// The channel to a supervisor would keep the process; everything of ours is closed by now, and the log is written at once.
process.exit(await main(argv.slice(2)));
