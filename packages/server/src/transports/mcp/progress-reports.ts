import type { ServerNotification } from '@modelcontextprotocol/sdk/types.js';
import type { Progress } from '../../sandboxes/start-progress.ts';
import type { SessionLog } from './session-log.ts';

/** Downloads report many times a second; nobody reads that fast. */
const INTERVAL_MS = 200;
const MIB = 1024 * 1024;

/**
 * Turns the progress of a call into log messages, and into progress notifications for whoever asked for them with a token.
 * Their numbers only ever grow, as the protocol demands, so how far a download is stands in the message.
 */
export function reportProgress(
  token: string | number | undefined,
  log: SessionLog,
  send: (notification: ServerNotification) => Promise<void>,
): (progress: Progress) => void {
  let count = 0;
  let lastAt = -INTERVAL_MS;
  let lastMessage = '';
  return (progress) => {
    const now = performance.now();
    if (progress.message === lastMessage && now - lastAt < INTERVAL_MS) return;
    if (progress.message !== lastMessage) log.write('info', progress.message, send).catch(ignore);
    lastAt = now;
    lastMessage = progress.message;
    count += 1;
    if (token === undefined) return;
    const params = { progressToken: token, progress: count, message: describe(progress) };
    send({ method: 'notifications/progress', params }).catch(ignore);
  };
}

function ignore(): void {
  // Somebody who has left needs no news.
}

function describe({ message, done, total }: Progress): string {
  if (done === null) return message;
  const amount = total === null ? toMib(done) : `${toMib(done)} of ${toMib(total)}`;
  return `${message}: ${amount} MiB`;
}

function toMib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
