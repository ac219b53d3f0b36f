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
  /** Where it is, whatever its name would lead to now. */
  readonly destination: Destination;
  /** Who it must be. */
  readonly host: string;
  readonly context: SecureContext;
  readonly protocols: readonly string[];
}

export interface ServerSocket {
  /** Whether it is who it must be is in its `authorized`, and for the caller to look at. */
  readonly socket: TLSSocket;
  readonly divert: Divert;
}

/**
 * What all such sockets read into, one after the other: each read is taken out before the next. A buffer of its own for each record of
 * TLS is memory outside the heap, and finding out that it is not needed any more costs more than reading it did.
 */
const READ_BUFFER = new Uint8Array(64 * 1024);

/** Opens a connection to a server over TLS, whose bytes can be had without their going through a stream. */
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
    // Looked at by the caller, so that the ways to fail are told apart.
    rejectUnauthorized: false,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    // SAFETY: the name that the sandbox said decides, not the address that is dialled.
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
    ...(protocols.length > 0 ? { ALPNProtocols: [...protocols] } : {}),
    onread: { buffer: READ_BUFFER, callback: onRead },
  };
  const socket = connect(options);
  return { socket, divert: (take) => (taker = take) };
}
