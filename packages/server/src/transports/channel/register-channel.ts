import type { FastifyInstance } from 'fastify';
import { CodeChannel, type CodeChannelParts } from './code-channel.ts';
import { CommandChannel } from './command-channel.ts';
import { EventQueue } from './event-queue.ts';
import { WebSocketDoor, type DoorParts } from './web-socket-door.ts';

export interface ChannelSettings extends Pick<DoorParts, 'limits'> {
  /** How often a client is pinged, and asked for its credential again. */
  readonly keepAliveMs: number;
}

export const DEFAULT_CHANNEL_SETTINGS: ChannelSettings = {
  limits: { perSandbox: 128, perOrganization: 2048 },
  keepAliveMs: 30_000,
};

export interface ChannelParts extends Omit<DoorParts, 'limits'> {
  readonly settings: ChannelSettings;
  /** Null: code cannot be run over a channel here. */
  readonly code: Pick<CodeChannelParts, 'dispatch' | 'calls' | 'maxBodyBytes'> | null;
}

/** What a client holds open to a sandbox: its command channel at `agent`, and one for code at `code/channel`. */
export function registerChannel(server: FastifyInstance, parts: ChannelParts): void {
  const { database, orchestrator, rateLimiter, logger, settings, code } = parts;
  const { limits, keepAliveMs } = settings;
  const door = new WebSocketDoor(server, { ...parts, limits });
  const events = new EventQueue(database);
  const commands = new CommandChannel({ database, orchestrator, events, keepAliveMs });
  door.add('agent', (visit) => commands.serve(visit));
  if (code !== null) {
    const channel = new CodeChannel({ ...code, rateLimiter, events, keepAliveMs, logger });
    door.add('code/channel', (visit) => channel.serve(visit));
  }
  server.addHook('preClose', async () => {
    await door.close();
    await events.close();
  });
}
