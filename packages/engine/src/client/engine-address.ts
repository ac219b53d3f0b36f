import type { AgentOptions, Agent as HttpAgent } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { Agent } from '@svc/contract/node-http';
import type { TlsCredentials } from './tls-credentials.ts';

/** Where an engine listens: on a unix socket of this host, or on a TCP port with mutual TLS. */
export type EngineAddress = { readonly socketPath: string } | TcpAddress;

export interface TcpAddress {
  /** A name or address that the certificate of the engine has. */
  readonly host: string;
  readonly port: number;
  readonly credentials: TlsCredentials;
}

/** After this long without traffic the kernel probes the other host, ten times in ten seconds. */
const KEEP_ALIVE_MS = 10_000;

/** The options of a request that lead it there. */
export function targetOf(
  address: EngineAddress,
): { readonly socketPath: string } | { readonly host: string; readonly port: number } {
  if ('socketPath' in address) return { socketPath: address.socketPath };
  return { host: address.host, port: address.port };
}

/** Keeps connections to an engine for later requests, unless the options say otherwise. */
export function createAgent(address: EngineAddress, options: AgentOptions): HttpAgent {
  const agent = new Agent({ keepAlive: true, ...options });
  if ('socketPath' in address) return agent;
  return Object.assign(agent, { createConnection: () => connect(address) });
}

/** A request that is written to it waits for the handshake. Files that were replaced are used by the next connection. */
function connect({ host, port, credentials }: TcpAddress): Duplex {
  // Here, because most programs that ask an engine do so over its socket, and the module takes a while to load.
  const { connect: connectTls } = process.getBuiltinModule('node:tls');
  const socket = connectTls({
    host,
    port,
    ...credentials.current,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    minVersion: 'TLSv1.3',
  });
  return socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
}
