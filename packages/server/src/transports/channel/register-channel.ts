import type { FastifyInstance } from 'fastify';
import { CodeChannel, type CodeChannelParts } from './code-channel.ts';
import { CommandChannel } from './command-channel.ts';
import { EventQueue } from './event-queue.ts';
import { WebSocketUpgrades, type UpgradeParts } from './web-socket-upgrades.ts';

export interface ChannelSettings extends Pick<UpgradeParts, 'limits'> {
  /** Interval between pings, and between checks of the client's permission. */
  readonly keepAliveMs: number;
}

export const DEFAULT_CHANNEL_SETTINGS: ChannelSettings = {
  limits: { perSandbox: 128, perOrganization: 2048 },
  keepAliveMs: 30_000,
};

export interface ChannelParts extends Omit<UpgradeParts, 'limits'> {
  readonly settings: ChannelSettings;
  /** Null: channels for code are disabled. */
  readonly code: Pick<CodeChannelParts, 'dispatch' | 'calls' | 'maxBodyBytes'> | null;
}

/**
 * Registers the WebSockets of a sandbox: its command channel at `agent`, and the channel for code at `code/channel`.
 */
export function registerChannel(server: FastifyInstance, parts: ChannelParts): void {
  const { database, orchestrator, rateLimiter, logger, settings, code } = parts;
  const { limits, keepAliveMs } = settings;
  const upgrades = new WebSocketUpgrades(server, { ...parts, limits });
  const events = new EventQueue(database);
  const commands = new CommandChannel({ database, orchestrator, events, keepAliveMs });
  upgrades.add('agent', (visit) => commands.serve(visit));
  if (code !== null) {
    const channel = new CodeChannel({ ...code, rateLimiter, events, keepAliveMs, logger });
    upgrades.add('code/channel', (visit) => channel.serve(visit));
  }
  server.addHook('preClose', async () => {
    await upgrades.close();
    await events.close();
  });
}
