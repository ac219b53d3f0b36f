import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from 'pino';

const TIMEOUT_MS = 10_000;
/** Messages within the watchdog time of systemd: two may get lost. */
const MESSAGES_WITHIN_LIMIT = 3;
const exec = promisify(execFile);

/** The environment that systemd gives to a service of type notify. */
export interface ServiceManager {
  /** NOTIFY_SOCKET */
  readonly socket: string;
  /** WATCHDOG_USEC: it kills and replaces a service that is silent for this long; null: no watchdog. */
  readonly watchdogMs: number | null;
}

export function readServiceManager(env: Readonly<NodeJS.ProcessEnv>): ServiceManager | null {
  const socket = env['NOTIFY_SOCKET'];
  const watchdogMs = Number(env['WATCHDOG_USEC'] ?? '') / 1000;
  return socket === undefined ? null : { socket, watchdogMs: watchdogMs > 0 ? watchdogMs : null };
}

/** Reports that the service is ready; `systemctl start` waits for it. */
export async function reportReady(manager: ServiceManager | null, logger: Logger): Promise<void> {
  await notify(manager, '--ready', logger);
}

/** Sends keep-alive messages from the event loop, so that a process that hangs falls silent. Returns a function that stops them. */
export function keepAlive(manager: ServiceManager | null, logger: Logger): () => void {
  if (manager === null || manager.watchdogMs === null) return () => undefined;
  const timer = setInterval(
    () => void notify(manager, 'WATCHDOG=1', logger),
    manager.watchdogMs / MESSAGES_WITHIN_LIMIT,
  );
  return () => clearInterval(timer);
}

/** Sends the message with `systemd-notify`, because Node has no Unix datagram sockets. */
async function notify(manager: ServiceManager | null, message: string, logger: Logger): Promise<void> {
  if (manager === null) return;
  try {
    // SAFETY: no shell; the path of the socket comes from the parent process.
    await exec('systemd-notify', [message], {
      env: { PATH: '/usr/bin:/bin', NOTIFY_SOCKET: manager.socket },
      timeout: TIMEOUT_MS,
    });
  } catch (error) {
    logger.warn({ err: error }, `systemd could not be notified: ${message}`);
  }
}
