import { flushCompileCache } from 'node:module';
import { argv, env } from 'node:process';
import { pino, type Logger } from 'pino';
import { readConfig, type ServerConfig } from './config.ts';
import { alreadyRunning } from './process/already-running.ts';
import { becomeUser, findIdentity } from './process/drop-privileges.ts';
import { lockDataFolder } from './process/data-folder-lock.ts';
import { EXIT } from './process/exit-codes.ts';
import { forgetPid, writePid } from './process/pid-file.ts';
import { prepareFolders } from './process/prepare-folders.ts';
import { StartError } from './process/start-error.ts';
import { runSupervisor } from './supervisor.ts';

/** `svc server start` runs this. As root it supervises; otherwise, and as the supervisor's child, it serves. */
async function main(args: readonly string[]): Promise<number> {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort());
  let logger = createLogger('info');
  try {
    const config = readConfig(args, env);
    logger = createLogger(config.logLevel);
    if (config.isSupervised) return await serveSupervised(config, stop, logger);
    if (process.getuid?.() !== 0) {
      await prepareFolders(config, null);
      return await alone(config, () => serve(config, stop.signal, logger));
    }
    await prepareFolders(config, findIdentity(config.runAs));
    return await alone(config, () => runSupervisor(config, args, stop.signal, logger));
  } catch (error) {
    return reportFailure(error, logger);
  }
}

async function serveSupervised(config: ServerConfig, stop: AbortController, logger: Logger): Promise<number> {
  // Whatever becomes of the supervisor, nobody serves without one.
  process.on('disconnect', () => stop.abort());
  // Everything that will be needed is loaded now: the program may be where the service user cannot read.
  await import('./web.ts');
  flushCompileCache();
  becomeUser(findIdentity(config.runAs));
  return await serve(config, stop.signal, logger, () => process.send?.('ready'));
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
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }));
  logger.info('the server is shutting down; sandboxes run on');
  await web.close();
  return EXIT.stopped;
}

/** As the one server of the data folder. */
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

function reportFailure(error: unknown, logger: Logger): number {
  if (error instanceof StartError) {
    logger.fatal(error.message);
    return error.exitCode;
  }
  logger.fatal({ err: error }, 'the server cannot start');
  const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
  return isTaken ? EXIT.addressInUse : EXIT.failed;
}

/** Written at once, so that the last words before an end are not lost. */
function createLogger(level: string): Logger {
  return pino({ level }, pino.destination({ fd: 2, sync: true }));
}

// The channel to a supervisor would keep the process; everything of ours is closed by now, and the log is written at once.
process.exit(await main(argv.slice(2)));
