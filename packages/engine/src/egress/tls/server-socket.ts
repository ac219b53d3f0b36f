import { isIP, type TcpNetConnectOpts } from 'node:net';
import {
  checkServerIdentity,
  connect,
  type ConnectionOptions,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import type { Divert, TakeBytes } from '../http/exchange.ts';
import type { Destination } from '../proxy/sandbox-egress.ts';

export interface ServerSocketOptions {
  /** The address to dial; `host` is not resolved again. */
  readonly destination: Destination;
  /** The host that the certificate must be for. */
  readonly host: string;
  readonly context: SecureContext;
  readonly protocols: readonly string[];
}

export interface ServerSocket {
  /** The result of the verification is in its `authorized`; the caller checks it. */
  readonly socket: TLSSocket;
  readonly divert: Divert;
}

/**
 * Read buffer that all these sockets share: each read is copied out before the next. A separate buffer for each TLS record
 * is memory outside the heap, and collecting it costs more than the read itself.
 */
const READ_BUFFER = new Uint8Array(64 * 1024);

/** Opens a TLS connection to a server whose bytes can be read without going through a stream. */
export function openServerSocket({
  destination,
  host,
  context,
  protocols,
}: ServerSocketOptions): ServerSocket {
  let taker: TakeBytes | null = null;
  const onRead = (length: number, buffer: Uint8Array) => {
    const bytes = buffer.subarray(0, length);
    return taker === null ? socket.push(Buffer.from(bytes)) : taker(bytes);
  };
  const options: ConnectionOptions & TcpNetConnectOpts = {
    host: destination.address,
    port: destination.port,
    noDelay: true,
    keepAlive: true,
    secureContext: context,
    // The caller checks the result, so that it can report the kinds of failure separately.
    rejectUnauthorized: false,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    // SAFETY: the certificate is checked against the name that the sandbox sent, not against the dialled address.
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
    ...(protocols.length > 0 ? { ALPNProtocols: [...protocols] } : {}),
    onread: { buffer: READ_BUFFER, callback: onRead },
  };
  const socket = connect(options);
  return { socket, divert: (take) => (taker = take) };
}
