import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { TransparentProxy, PROXY_LIMITS, type ProxyLimits } from '../egress/proxy/transparent-proxy.ts';
import type { Destination, Refusal, Rules, SandboxEgress } from '../egress/proxy/sandbox-egress.ts';

export const SANDBOX = '127.0.0.1';

/** Rules that allow by the claimed (and resolved) name, or everything. */
export function rulesFor(
  allowed: readonly string[] | 'all',
  { isStrict = false, denied = [] as readonly string[] } = {},
): Rules {
  return {
    isStrict,
    isPinned: (name) => allowed === 'all' || allowed.includes(name),
    decide: (_, said) => {
      if (said !== undefined && denied.includes(said)) return { action: 'deny', rule: null, isByName: true };
      if (allowed === 'all') return { action: 'allow', rule: null, isByName: false };
      const isAllowed = said === undefined ? !isStrict : allowed.includes(said);
      return { action: isAllowed ? 'allow' : 'deny', rule: null, isByName: isAllowed };
    },
  };
}

export interface ListeningTcp extends AsyncDisposable {
  readonly port: number;
  readonly sockets: ReadonlySet<Socket>;
  /** All bytes that were ever received, as latin1. */
  readonly received: () => string;
}

export async function listenTcp(onConnection: (socket: Socket) => void): Promise<ListeningTcp> {
  const sockets = new Set<Socket>();
  const chunks: Buffer[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('data', (chunk) => chunks.push(chunk));
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    received: () => Buffer.concat(chunks).toString('latin1'),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

export interface TestProxy extends AsyncDisposable {
  readonly port: number;
  readonly proxy: TransparentProxy;
  readonly refusals: Refusal[];
  readonly accepted: ReadonlySet<Socket>;
}

/** A proxy on loopback: each connection to it counts as one from a sandbox to `destination`. */
export async function startProxy(
  destination: Destination,
  egress: Partial<SandboxEgress> & Pick<SandboxEgress, 'rules'>,
  limits: Partial<ProxyLimits> = {},
): Promise<TestProxy> {
  const refusals: Refusal[] = [];
  const whole: SandboxEgress = {
    maxConnections: 256,
    interceptedPorts: new Set(),
    readsPlainHttp: false,
    isBypassed: () => false,
    intercept: ({ client }) => client.destroy(),
    ...egress,
  };
  const proxy = new TransparentProxy({
    find: (sandbox) => (sandbox === SANDBOX ? whole : undefined),
    onRefusal: (refusal) => refusals.push(refusal),
    limits: { ...PROXY_LIMITS, ...limits },
  });
  const accepted = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    accepted.add(socket);
    proxy.accept(socket, destination);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    proxy,
    refusals,
    accepted,
    [Symbol.asyncDispose]: async () => {
      for (const socket of accepted) socket.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Sends `bytes` and returns the response until the end: the text, or the code of the error that ended it. */
export async function exchangeTcp(
  port: number,
  bytes: Buffer | string,
  { end = true } = {},
): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  if (end) socket.end(bytes);
  else socket.write(bytes);
  try {
    await once(socket, 'end', { signal: AbortSignal.timeout(30_000) });
    return Buffer.concat(chunks).toString('latin1');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  } finally {
    socket.destroy();
  }
}
