import type { ChannelLimits } from '../channel/channel-slots.ts';

export interface SshSettings {
  readonly host: string;
  readonly port: number;
  /** A connection over which nothing was sent for this long is ended; 0: never. */
  readonly inactivityMs: number;
  /** How often a client is asked whether it is still there. */
  readonly keepAliveMs: number;
  /** How often it is looked up whether a client may go on, and was active. */
  readonly recheckMs: number;
  /** A client that has not logged in by then is sent away. */
  readonly loginMs: number;
  /** Keys that one connection may try. */
  readonly maxAttempts: number;
  readonly connections: {
    readonly total: number;
    /** Of those, how many may not be logged in yet: in all, and from one address. */
    readonly unauthenticated: number;
    readonly unauthenticatedPerAddress: number;
    /** Of one address that may begin within ten seconds: each is a key exchange, on the thread that serves everybody. */
    readonly newPerAddress: number;
  };
  /** Logged in. */
  readonly limits: ChannelLimits;
  /** Shells, commands, transfers and forwarded connections at once over one connection. */
  readonly channelsPerConnection: number;
}

export const DEFAULT_SSH_SETTINGS: Omit<SshSettings, 'host' | 'port'> = {
  inactivityMs: 10 * 60_000,
  keepAliveMs: 30_000,
  recheckMs: 30_000,
  loginMs: 60_000,
  maxAttempts: 20,
  connections: { total: 2048, unauthenticated: 128, unauthenticatedPerAddress: 32, newPerAddress: 500 },
  limits: { perSandbox: 64, perOrganization: 1024 },
  channelsPerConnection: 64,
};
