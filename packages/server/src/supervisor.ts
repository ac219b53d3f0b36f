import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { SUPERVISED, type ServerConfig } from './config.ts';
import { engineCommand } from './engine-process/engine-command.ts';
import { EngineProcess } from './engine-process/engine-process.ts';
import { isEngineThere } from './engine-process/is-engine-there.ts';
import type { Identity } from './process/drop-privileges.ts';
import { EXIT } from './process/exit-codes.ts';
import { SERVER_MAIN } from './process/pid-file.ts';

/** Calls leave much short-lived garbage; with a small nursery it does not become resident memory. */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=25'];
/** Said to the web-facing process when it may serve. */
const SERVE = 'serve';
const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 5000;

/**
 * The root process of `svc server start`: it keeps the engine (as root) and the web-facing process (as the service user)
 * running, listens to nobody, and parses nothing. The folders that they need are there by now.
 * @returns the exit code
 */
export async function runSupervisor(
  config: ServerConfig,
  owner: Identity,
  web: WebProcess,
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  const isAttached = config.isEngineExternal || (await isEngineThere(config.engineSocket));
  if (isAttached)
    logger.info({ socket: config.engineSocket }, 'no engine is started: the one behind the socket is used');
  const command = engineCommand(config.dataFolder, owner, config.engineArguments);
  const engine = isAttached
    ? undefined
    : new EngineProcess({ dataFolder: config.dataFolder, command, logger });
  try {
    return await keepWebRunning(web, stop, logger);
  } finally {
    await engine?.stop();
  }
}

/** A web-facing process that loads its modules, and serves once it is told to. */
export interface WebProcess {
  readonly child: ChildProcess;
  /** The exit code; null when a signal ended it. Rejects when it could not be started. */
  readonly exited: Promise<number | null>;
  readonly args: readonly string[];
}

/** `args` of the server. */
export function startWebProcess(args: readonly string[]): WebProcess {
  // SAFETY: no shell; our own program. It begins as root to load its modules, wherever they are, and drops root before
  // it opens anything. It notices our end by the closed IPC channel.
  const child = spawn(process.execPath, [...NODE_OPTIONS, SERVER_MAIN, ...args, `--${SUPERVISED}`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    cwd: '/',
  });
  const exited = once(child, 'exit').then(([code]: (number | null)[]) => code ?? null);
  exited.catch(() => undefined); // Seen by whoever waits for it.
  return { child, exited, args };
}

async function keepWebRunning(first: WebProcess, stop: AbortSignal, logger: Logger): Promise<number> {
  let web = first;
  let retryMs = FIRST_RETRY_MS;
  for (;;) {
    const { code, wasReady } = await serveUntilExit(web, stop);
    if (stop.aborted) return EXIT.stopped;
    // One that never listened says itself why, and would say it again.
    if (!wasReady) return code;
    logger.error({ code, retryMs }, 'the web-facing process ended; it is started again');
    await delay(retryMs, undefined, { signal: stop }).catch(() => undefined);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
    // The key was reset once; keys that were made since must stay valid.
    web = startWebProcess(web.args.filter((word) => word !== '--reset-key'));
  }
}

async function serveUntilExit(
  { child, exited }: WebProcess,
  stop: AbortSignal,
): Promise<{ readonly code: number; readonly wasReady: boolean }> {
  let wasReady = false;
  child.on('message', () => {
    wasReady = true;
  });
  child.send(SERVE, () => undefined); // One that has ended already is seen as such.
  const end = () => child.kill('SIGTERM');
  stop.addEventListener('abort', end, { once: true });
  if (stop.aborted) end();
  const code = await exited;
  stop.removeEventListener('abort', end);
  return { code: code ?? EXIT.failed, wasReady };
}
