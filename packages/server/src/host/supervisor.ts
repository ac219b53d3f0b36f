import type { ChildProcess } from 'node:child_process';
import { spawn } from '@svc/contract/node-spawn';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { onAbort } from '@svc/contract/async';
import {
  engineCommand,
  readProcessState,
  SUPERVISED as ENGINE_SUPERVISED,
  Watchdog,
} from '@svc/engine/client';
import type { Logger } from 'pino';
import { EngineProcess } from './engine-process.ts';
import type { Identity } from './drop-privileges.ts';
import { EXIT } from './exit-codes.ts';
import { noteWeb, SERVER_MAIN, findWeb } from './pid-file.ts';
import { RestartDelay } from './restart-delay.ts';
import { keepAlive, reportReady, type ServiceManager } from './notify-systemd.ts';

/** For its calls in progress. New calls wait until it has ended. */
const GRACE_MS = 1000;
const LOOK_MS = 20;

/** Calls leave much short-lived garbage; with a small nursery it does not become resident memory. */
const NODE_OPTIONS = ['--max-semi-space-size=4', '--heap-growing-percent=25'];
/** The option of the web-facing process that says it has a supervisor. */
export const SUPERVISED = 'supervised';
/** Said to the web-facing process when it may serve. */
export const SERVE = 'serve';
/** Asked of it, and answered with the same word, for as long as it lives. */
export const PULSE = 'pulse';
/** Said by it when it serves. */
export const READY = 'ready';

/** Where the engine is, and what it is started with. */
export interface EnginePlace {
  readonly dataFolder: string;
  readonly engineSocket: string;
  readonly nodesPath: string | null;
  /** The engine is run by another supervisor. */
  readonly isEngineExternal: boolean;
  readonly engineArguments: readonly string[];
  /** Null: it was not systemd that started us. */
  readonly serviceManager: ServiceManager | null;
}

/**
 * The root process of `svc server start`: it keeps the engine (as root) and the web-facing process (as the service user)
 * running. It listens on no socket and parses no input. The folders that they need exist by now.
 * @returns the exit code
 */
export async function runSupervisor(
  place: EnginePlace,
  owner: Identity,
  web: WebProcess,
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  if (place.serviceManager === null)
    logger.info(
      'nothing restarts this supervisor when it ends or hangs: systemd does (svc install --systemd)',
    );
  const stopKeepAlive = keepAlive(place.serviceManager, logger);
  try {
    return await superviseBoth(place, owner, web, stop, logger);
  } finally {
    stopKeepAlive();
  }
}

async function superviseBoth(
  place: EnginePlace,
  owner: Identity,
  web: WebProcess,
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  const { dataFolder, engineSocket: socketPath, nodesPath, isEngineExternal, engineArguments } = place;
  if (isEngineExternal) {
    if (nodesPath === null)
      logger.info({ socket: socketPath }, 'no engine is started: the one behind the socket is used');
    else logger.info({ nodes: nodesPath }, 'no engine is started: those of the nodes are used');
    return await keepWebRunning(place, web, stop, logger);
  }
  const socketOwner = ['--socket-owner', `${owner.uid}:${owner.gid}`];
  const command = engineCommand(dataFolder, [...socketOwner, ENGINE_SUPERVISED, ...engineArguments]);
  const refused = new AbortController();
  const onRefused = (reason: string) => {
    logger.fatal(`the engine does not start: ${reason}`);
    refused.abort();
  };
  const engine = new EngineProcess({ dataFolder, socketPath, owner, command, logger, onRefused });
  try {
    const code = await keepWebRunning(place, web, AbortSignal.any([stop, refused.signal]), logger);
    return refused.signal.aborted ? EXIT.usage : code;
  } finally {
    await engine.stop();
  }
}

/** A web-facing process that has loaded its modules and serves after the message `serve`. */
export interface WebProcess {
  readonly child: ChildProcess;
  /** Rejects when it could not be started. */
  readonly exited: Promise<Ending>;
  readonly args: readonly string[];
}

interface Ending {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
}

/** `args` of the server. */
export function startWebProcess(args: readonly string[]): WebProcess {
  // SAFETY: no shell; our own program. It begins as root to load its modules, wherever they are, and drops root before
  // it opens anything. It notices our end by the closed IPC channel.
  const child = spawn(process.execPath, [...NODE_OPTIONS, '--', SERVER_MAIN, ...args, `--${SUPERVISED}`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    cwd: '/',
  });
  const exited: Promise<Ending> = once(child, 'exit').then(([code, signal]) => ({ code, signal }));
  exited.catch(() => undefined); // Handled where it is awaited.
  return { child, exited, args };
}

async function keepWebRunning(
  { dataFolder, serviceManager }: EnginePlace,
  first: WebProcess,
  stop: AbortSignal,
  logger: Logger,
): Promise<number> {
  await endFormerWeb(dataFolder, logger);
  const restartDelay = new RestartDelay();
  let web = first;
  let hasServed = false;
  for (;;) {
    const startedAt = performance.now();
    await noteWeb(dataFolder, web.child.pid).catch((error: unknown) =>
      logger.warn(
        { err: error },
        'should this server be killed, the next one may not find what is left of it',
      ),
    );
    const { ending, wasReady } = await serveUntilExit(web, stop, serviceManager, logger);
    if (stop.aborted) return EXIT.stopped;
    hasServed ||= wasReady;
    // One that exited before it ever listened has said why, and would say it again.
    if (!hasServed && ending.code !== null) {
      logger.error(ending, 'the web-facing process did not start');
      return ending.code === EXIT.stopped ? EXIT.failed : ending.code;
    }
    const retryMs = restartDelay.after(performance.now() - startedAt);
    logger.error({ ...ending, retryMs }, 'the web-facing process ended; it is started again');
    await delay(retryMs, undefined, { signal: stop }).catch(() => undefined);
    // The key was reset once; keys that were made since must stay valid.
    const args = web.args.filter((word) => word !== '--reset-key' || !hasServed);
    const next = await startAgain(args, restartDelay, stop, logger);
    if (next === null) return EXIT.stopped;
    web = next;
  }
}

/** Retries until the host has descriptors and processes for it; null when this process was stopped meanwhile. */
async function startAgain(
  args: readonly string[],
  restartDelay: RestartDelay,
  stop: AbortSignal,
  logger: Logger,
): Promise<WebProcess | null> {
  while (!stop.aborted) {
    try {
      const web = startWebProcess(args);
      await once(web.child, 'spawn');
      return web;
    } catch (error) {
      const retryMs = restartDelay.after(0);
      logger.error({ err: error, retryMs }, 'the web-facing process could not be started; it is tried again');
      await delay(retryMs, undefined, { signal: stop }).catch(() => undefined);
    }
  }
  return null;
}

async function serveUntilExit(
  { child, exited }: WebProcess,
  stop: AbortSignal,
  serviceManager: ServiceManager | null,
  logger: Logger,
): Promise<{ readonly ending: Ending; readonly wasReady: boolean }> {
  let wasReady = false;
  child.on('message', (message) => {
    if (message !== READY) return;
    wasReady = true;
    void reportReady(serviceManager, logger);
  });
  child.send(SERVE, () => undefined); // One that has ended already is seen as such.
  const stopListening = onAbort(stop, () => child.kill('SIGTERM'));
  const watchdog = watch(child, logger);
  try {
    return { ending: await exited, wasReady };
  } finally {
    watchdog.close();
    stopListening();
  }
}

function watch(child: ChildProcess, logger: Logger): Watchdog {
  const ask = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const listen = (message: unknown) => {
        if (message === PULSE) over();
      };
      const over = () => {
        child.off('message', listen);
        signal.removeEventListener('abort', over);
        resolve();
      };
      child.on('message', listen);
      signal.addEventListener('abort', over, { once: true });
      child.send(PULSE, () => undefined);
    });
  return new Watchdog({
    ask,
    look: () => (child.pid === undefined ? undefined : readProcessState(child.pid)),
    onFrozen: (reason) => {
      logger.error({ reason }, 'the web-facing process hangs; it is killed and started again');
      child.kill('SIGKILL');
    },
  });
}

/**
 * Ends the web-facing process of a supervisor that was killed: it exits unless it hangs. Call it only with the lock of the
 * folder, so that there is no other supervisor whose process it could be.
 */
async function endFormerWeb(dataFolder: string, logger: Logger): Promise<void> {
  const pid = await findWeb(dataFolder);
  if (pid === undefined) return;
  const deadline = performance.now() + GRACE_MS;
  while ((await findWeb(dataFolder)) === pid) {
    const isFrozen = readProcessState(pid)?.state === 'T';
    if (isFrozen || performance.now() > deadline) {
      logger.warn({ pid, isFrozen }, 'the web-facing process of a former server is ended');
      return kill(pid);
    }
    await delay(LOOK_MS);
  }
}

function kill(pid: number): void {
  try {
    // SAFETY: noted by root together with the time it started, so it is ours and no other.
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended in this moment.
  }
}
