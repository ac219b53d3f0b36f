import type { ChannelLimits } from '../channel/channel-slots.ts';

export interface SshSettings {
  readonly host: string;
  readonly port: number;
  /** A connection over which nothing was sent for this long is ended; 0: never. */
  readonly inactivityMs: number;
  /** Interval of keep-alive requests to a client. */
  readonly keepAliveMs: number;
  /** Interval of checks of a client's permission and activity. */
  readonly recheckMs: number;
  /** A client that has not logged in after this time is disconnected. */
  readonly loginMs: number;
  /** Keys that one connection may try. */
  readonly maxAttempts: number;
  readonly connections: {
    readonly total: number;
    /** Limits of connections that have not logged in yet: in all, and per address. */
    readonly unauthenticated: number;
    readonly unauthenticatedPerAddress: number;
    /** New connections per address within ten seconds: each costs a key exchange on the main thread. */
    readonly newPerAddress: number;
  };
  /** Limits after the login. */
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
