import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from 'pino';

const TIMEOUT_MS = 10_000;
/** Of the time after which systemd takes us for frozen: two messages may get lost. */
const MESSAGES_WITHIN_LIMIT = 3;
const exec = promisify(execFile);

/** What systemd gives to a service of type notify. */
export interface ServiceManager {
  /** NOTIFY_SOCKET */
  readonly socket: string;
  /** WATCHDOG_USEC: it kills and replaces a service that is silent for so long; null: it does not look. */
  readonly watchdogMs: number | null;
}

export function readServiceManager(env: Readonly<NodeJS.ProcessEnv>): ServiceManager | null {
  const socket = env['NOTIFY_SOCKET'];
  const watchdogMs = Number(env['WATCHDOG_USEC'] ?? '') / 1000;
  return socket === undefined ? null : { socket, watchdogMs: watchdogMs > 0 ? watchdogMs : null };
}

/** `systemctl start` waits for this. */
export async function reportReady(manager: ServiceManager | null, logger: Logger): Promise<void> {
  await notify(manager, '--ready', logger);
}

/** Tells again and again that this process is alive, from its event loop: one that hangs falls silent. Returns what ends it. */
export function keepAlive(manager: ServiceManager | null, logger: Logger): () => void {
  if (manager === null || manager.watchdogMs === null) return () => undefined;
  const timer = setInterval(
    () => void notify(manager, 'WATCHDOG=1', logger),
    manager.watchdogMs / MESSAGES_WITHIN_LIMIT,
  );
  return () => clearInterval(timer);
}

/** By a program of systemd's own, because Node has no datagrams of that kind. */
async function notify(manager: ServiceManager | null, message: string, logger: Logger): Promise<void> {
  if (manager === null) return;
  try {
    // SAFETY: no shell; the socket is named by what started us.
    await exec('systemd-notify', [message], {
      env: { PATH: '/usr/bin:/bin', NOTIFY_SOCKET: manager.socket },
      timeout: TIMEOUT_MS,
    });
  } catch (error) {
    logger.warn({ err: error }, `systemd could not be notified: ${message}`);
  }
}
