import type { Socket } from 'node:net';
import type { FirstFlight } from './first-flight.ts';

/** Destination of a connection: an address in standard notation, IPv4 never in IPv6 form. */
export interface Destination {
  readonly address: string;
  readonly port: number;
}

export interface Verdict {
  readonly action: 'allow' | 'deny';
  /** Index of the rule that matched; null when none did. */
  readonly rule: number | null;
  /** A rule about a name matched. */
  readonly isByName: boolean;
}

/**
 * The policy of one sandbox for its connections.
 * - `said` is the name that the connection claims; `''` when it should have one and has none; undefined when
 *   its protocol has no names.
 * - An allowed name counts only for addresses that this sandbox got by resolving it.
 */
export interface Rules {
  /** Whether rules that allow a name require a connection in which every request can be read. */
  readonly isStrict: boolean;
  decide(destination: Destination, said: string | undefined): Verdict;
  /** Whether this sandbox resolved the name to the address, and the record has not expired. */
  isPinned(name: string, address: string): boolean;
}

/** A connection whose requests are read one by one and then forwarded. */
export interface ReadableConnection {
  readonly client: Socket;
  readonly destination: Destination;
  /** The first bytes of the client; they can still be read from `client`. */
  readonly flight: Extract<FirstFlight, { kind: 'tls' | 'http' }>;
  readonly rules: Rules;
}

/** The rules and settings of one sandbox. */
export interface SandboxEgress {
  readonly rules: Rules;
  readonly maxConnections: number;
  /** Connections to these ports are intercepted; protocols that cannot be read are refused. */
  readonly interceptedPorts: ReadonlySet<number>;
  /** At other ports plain HTTP is intercepted too; other protocols pass through. */
  readonly readsPlainHttp: boolean;
  /** Whether connections to this host pass through on those ports as well. */
  readonly isBypassed: (serverName: string) => boolean;
  /** Takes over an allowed connection. Never throws; ends the connection on errors. */
  readonly intercept: (connection: ReadableConnection) => void;
}

/** Why a connection or request was refused. */
export type RefusalReason =
  | 'policy'
  | 'too_many_connections'
  | 'not_readable'
  | 'not_one_host'
  | 'malformed'
  | 'upstream_unreachable'
  | 'upstream_not_verified';

/** The fields of a connection in reports. */
export interface SeenConnection {
  readonly sandbox: string;
  readonly destination: Destination;
  /** Its protocol, as far as known. */
  readonly speaks: 'tcp' | 'tls' | 'http';
  /** The name that the connection claimed. */
  readonly name: string | null;
}

export interface Refusal extends SeenConnection {
  readonly reason: RefusalReason;
}
