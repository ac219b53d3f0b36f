import type { Duplex } from 'node:stream';
import type { Violation } from '../secrets/blocked-request.ts';
import type { RequestFilter, RequestHead } from '../secrets/request-filter.ts';
import type { HeldBytes } from './held-bytes.ts';

/** Takes bytes that are somebody else's as soon as it returns. False: no more for now, until the socket is asked to read. */
export type TakeBytes = (bytes: Uint8Array) => boolean;

/** From now on what a socket receives is given to this instead of its stream; null: to the stream again. */
export type Divert = (take: TakeBytes | null) => void;

/** One connection of a sandbox and the one that was opened for it, with nothing between them but what they speak. */
export interface Exchange {
  readonly client: Duplex;
  readonly upstream: Duplex;
  /** Leads what `upstream` receives past its stream; null where that cannot be. */
  readonly divert: Divert | null;
  /** Every request must be for this host, and for this port if it names one. */
  readonly host: string;
  readonly port: number;
  readonly filter: RequestFilter;
  readonly held: HeldOfSandbox;
  /** A request that was for somebody else. */
  readonly onForeignHost: (authority: string) => void;
  /** A request that was stopped; the relay has ended it already. */
  readonly onViolation: (violation: Violation) => void;
}

/** What is kept of all connections of one sandbox. */
export interface HeldOfSandbox {
  readonly bodies: HeldBytes;
  readonly heads: HeldBytes;
  readonly windows: HeldBytes;
}

/** What Node and the relays make for a request and for each header: estimates, and rather too much. */
const REQUEST_BYTES = 8 * 1024;
const HEADER_BYTES = 256;

/** What a request takes of the heap while it is under way. */
export function costOf(headers: HeaderList): number {
  return headers.reduce(
    (sum, [name, value]) => sum + HEADER_BYTES + name.length + value.length,
    REQUEST_BYTES,
  );
}

export const MAX_HEAD_BYTES = 64 * 1024;

export type HeaderList = RequestHead['headers'];

/** Headers that are about one connection, not about the message; each side has its own. RFC 9110, 7.6.1. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Without the headers that are about the connection, also those that `Connection` names. */
export function endToEnd(headers: HeaderList): HeaderList {
  const named = headers.flatMap(([name, value]) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(',') : [],
  );
  const dropped = new Set([...HOP_BY_HOP, ...named.map((name) => name.trim())]);
  // What says whom the request is for, and how long it is, is not anybody's to drop.
  for (const kept of ['host', 'content-length', 'te', 'trailer', '']) dropped.delete(kept);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}
