import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Logger } from 'pino';

const TIMEOUT_MS = 10_000;
const exec = promisify(execFile);

/**
 * Whoever typed `systemctl start` waits for this. By a program of systemd's own, because Node has no datagrams of that kind; without
 * systemd, nothing is told. `socket`: NOTIFY_SOCKET, as systemd gives it to a service of type notify.
 */
export async function tellSystemd(socket: string | null, logger: Logger): Promise<void> {
  if (socket === null) return;
  try {
    // SAFETY: no shell; the socket is named by whoever started us.
    await exec('systemd-notify', ['--ready'], {
      env: { PATH: '/usr/bin:/bin', NOTIFY_SOCKET: socket },
      timeout: TIMEOUT_MS,
    });
  } catch (error) {
    logger.warn({ err: error }, 'systemd could not be told that the server listens');
  }
}
