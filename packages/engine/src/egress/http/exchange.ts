import type { Duplex } from 'node:stream';
import type { Violation } from '../secrets/blocked-request.ts';
import type { RequestFilter, RequestHead } from '../secrets/request-filter.ts';
import type { HeldBytes } from './held-bytes.ts';

/** Consumes bytes in a shared buffer, which is reused after it returns. False: back-pressure, until the socket is asked to read. */
export type TakeBytes = (bytes: Uint8Array) => boolean;

/** Sends the bytes that a socket receives to this sink instead of its stream; null: to the stream again. */
export type Divert = (take: TakeBytes | null) => void;

/** A connection of a sandbox and the connection to its server, both decrypted. */
export interface Exchange {
  readonly client: Duplex;
  readonly upstream: Duplex;
  /** Redirects what `upstream` receives past its stream; null where that is impossible. */
  readonly divert: Divert | null;
  /** Every request must name this host, and this port if it names one. */
  readonly host: string;
  readonly port: number;
  readonly filter: RequestFilter;
  readonly held: HeldOfSandbox;
  /** A request that named another host. */
  readonly onForeignHost: (authority: string) => void;
  /** A request that was blocked; the relay has ended it already. */
  readonly onViolation: (violation: Violation) => void;
}

/** Memory held for all connections of one sandbox. */
export interface HeldOfSandbox {
  readonly bodies: HeldBytes;
  readonly heads: HeldBytes;
  readonly windows: HeldBytes;
}

/** Heap use of Node and the relays for a request and for each header: generous estimates. */
const REQUEST_BYTES = 8 * 1024;
const HEADER_BYTES = 256;

/** Heap use of a request while it is in progress. */
export function costOf(headers: HeaderList): number {
  return headers.reduce(
    (sum, [name, value]) => sum + HEADER_BYTES + name.length + value.length,
    REQUEST_BYTES,
  );
}

export const MAX_HEAD_BYTES = 64 * 1024;

export type HeaderList = RequestHead['headers'];

/** Hop-by-hop headers: they concern one connection, and each side has its own. RFC 9110, 7.6.1. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Without the hop-by-hop headers, including those that `Connection` names. */
export function endToEnd(headers: HeaderList): HeaderList {
  const named = headers.flatMap(([name, value]) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(',') : [],
  );
  const dropped = new Set([...HOP_BY_HOP, ...named.map((name) => name.trim())]);
  // Host and length headers stay, even when `Connection` names them.
  for (const kept of ['host', 'content-length', 'te', 'trailer', '']) dropped.delete(kept);
  return headers.filter(([name]) => !dropped.has(name.toLowerCase()));
}
