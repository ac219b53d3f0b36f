import type { LoggingLevel, ServerNotification } from '@modelcontextprotocol/sdk/types.js';

/** In order of severity. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** Log messages for the client of one session, from its requested level on. */
export class SessionLog {
  level: LoggingLevel = 'info';

  /** `send` writes to the stream of the request that the message belongs to. */
  async write(
    level: LoggingLevel,
    data: string,
    send: (notification: ServerNotification) => Promise<void>,
  ): Promise<void> {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.level)) return;
    await send({ method: 'notifications/message', params: { level, logger: 'svc', data } });
  }
}
