import type { LoggingLevel, ServerNotification } from '@modelcontextprotocol/sdk/types.js';

/** From the least to the most important. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** Messages for the client of one session, from the level on that it has asked for. */
export class SessionLog {
  level: LoggingLevel = 'info';

  /** `send`: on the stream of the request that the message belongs to. */
  async write(
    level: LoggingLevel,
    data: string,
    send: (notification: ServerNotification) => Promise<void>,
  ): Promise<void> {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.level)) return;
    await send({ method: 'notifications/message', params: { level, logger: 'svc', data } });
  }
}
