import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { env } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { SUPERVISED, type ServerConfig } from './config.ts';
import { engineCommand } from './engine-process/engine-command.ts';
import { EngineProcess } from './engine-process/engine-process.ts';
import { isEngineThere } from './engine-process/is-engine-there.ts';
import { findIdentity } from './process/drop-privileges.ts';
import { EXIT } from './process/exit-codes.ts';
import { SERVER_MAIN } from './process/pid-file.ts';

/** Calls leave much short-lived garbage; with a small nursery it does not become resident memory. */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=25'];
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5000;

/**
 * The root process of `svc server start`: it keeps the engine (as root) and the web-facing process (as the service user)
 * running, listens to nobody, and parses nothing.
 * @returns the exit code
 */
export async function runSupervisor(
  config: ServerConfig,
  args: readonly string[],
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  const owner = findIdentity(config.runAs);
  const isAttached = config.isEngineExternal || (await isEngineThere(config.engineSocket));
  if (isAttached) logger.info('using the engine that runs already');
  const command = engineCommand(config.dataFolder, owner, config.engineArguments);
  const engine = isAttached
    ? undefined
    : new EngineProcess({ dataFolder: config.dataFolder, command, logger });
  try {
    return await keepWebRunning(config, args, stop, logger);
  } finally {
    await engine?.stop();
  }
}

async function keepWebRunning(
  config: ServerConfig,
  args: readonly string[],
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  let given = args;
  let retryMs = FIRST_RETRY_MS;
  for (;;) {
    const child = startWebProcess(config, given);
    const { code, wasReady } = await waitForExit(child, stop);
    if (stop.aborted) return EXIT.stopped;
    // One that never listened says itself why, and would say it again.
    if (!wasReady) return code;
    logger.error({ code, retryMs }, 'the web-facing process ended; it is started again');
    // The key was reset once; keys that were made since must stay valid.
    given = given.filter((word) => word !== '--reset-key');
    await delay(retryMs, undefined, { signal: stop }).catch(() => undefined);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

function startWebProcess({ dataFolder }: ServerConfig, args: readonly string[]): ChildProcess {
  // SAFETY: no shell; our own program. It begins as root to load its modules, wherever they are, and drops root before
  // it opens anything. It notices our end by the closed IPC channel.
  return spawn(process.execPath, [...NODE_OPTIONS, SERVER_MAIN, ...args, `--${SUPERVISED}`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    cwd: '/',
    // SAFETY: the cached code is run as root, so the cache is beside the server's folder, where only root can write.
    env: { ...env, NODE_COMPILE_CACHE: join(dataFolder, 'code-cache') },
  });
}

async function waitForExit(
  child: ChildProcess,
  stop: AbortSignal,
): Promise<{ readonly code: number; readonly wasReady: boolean }> {
  let wasReady = false;
  child.on('message', () => {
    wasReady = true;
  });
  const end = () => child.kill('SIGTERM');
  stop.addEventListener('abort', end, { once: true });
  if (stop.aborted) end();
  const [code] = (await once(child, 'exit')) as [number | null];
  stop.removeEventListener('abort', end);
  return { code: code ?? EXIT.failed, wasReady };
}
