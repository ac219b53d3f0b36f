import type { Socket } from 'node:net';
import type { FirstFlight } from './first-flight.ts';

/** Where a sandbox meant to go: an address in standard notation, IPv4 never written as IPv6. */
export interface Destination {
  readonly address: string;
  readonly port: number;
}

export interface Verdict {
  readonly action: 'allow' | 'deny';
  /** Index of the rule that decided; null when none did. */
  readonly rule: number | null;
  /** A rule about a name decided. */
  readonly isByName: boolean;
}

/**
 * What the policy of one sandbox says about its connections.
 * - `said` is the name that the connection itself claims to mean; `''` when it should have said one and did not; undefined when
 *   it speaks nothing that has names.
 * - A name that is allowed counts only for addresses that this sandbox was led to by it.
 */
export interface Rules {
  /** Whether rules that allow a name need a connection in which every request can be read. */
  readonly isStrict: boolean;
  decide(destination: Destination, said: string | undefined): Verdict;
  /** Whether this sandbox resolved the name to the address, not too long ago. */
  isPinned(name: string, address: string): boolean;
}

/** A connection whose requests are read, one by one, before they go on. */
export interface ReadableConnection {
  readonly client: Socket;
  readonly destination: Destination;
  /** What the client began with; it is still to be read from `client`. */
  readonly flight: Extract<FirstFlight, { kind: 'tls' | 'http' }>;
  readonly rules: Rules;
}

/** What one sandbox is held to. */
export interface SandboxEgress {
  readonly rules: Rules;
  readonly maxConnections: number;
  /** Connections to these ports are read; what cannot be read does not pass. */
  readonly interceptedPorts: ReadonlySet<number>;
  /** At other ports plain HTTP is read too, and what is no HTTP passes as it is. */
  readonly readsPlainHttp: boolean;
  /** Whether connections in the name of this host are left alone also on those ports. */
  readonly isBypassed: (serverName: string) => boolean;
  /** Takes over a connection that was allowed. Never throws; ends the connection when it cannot go on. */
  readonly intercept: (connection: ReadableConnection) => void;
}

/** Why a connection or request did not pass. */
export type RefusalReason =
  | 'policy'
  | 'too_many_connections'
  | 'not_readable'
  | 'not_one_host'
  | 'malformed'
  | 'upstream_unreachable'
  | 'upstream_not_verified';

/** A connection as far as it is told of. */
export interface SeenConnection {
  readonly sandbox: string;
  readonly destination: Destination;
  /** What it speaks, as far as that was seen. */
  readonly speaks: 'tcp' | 'tls' | 'http';
  /** The name that the connection claimed to mean. */
  readonly name: string | null;
}

export interface Refusal extends SeenConnection {
  readonly reason: RefusalReason;
}
