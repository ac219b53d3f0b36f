import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { LengthFrames, frame } from '../egress/length-frames.ts';
import type { Resolver } from '../egress/resolvers.ts';

export interface SampleResolver extends Resolver, AsyncDisposable {
  /** Number of open TCP connections. */
  readonly connections: number;
  readonly seen: readonly { readonly id: number; readonly port: number; readonly query: Buffer }[];
}

/** A resolver for tests: sends back the messages that `answer` makes of a query, now or later. */
export async function startSampleResolver(
  address: string,
  answer: (query: Buffer, transport: 'udp' | 'tcp') => readonly Buffer[] | Promise<readonly Buffer[]>,
  wantedPort = 0,
): Promise<SampleResolver> {
  const seen: { id: number; port: number; query: Buffer }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    const frames = new LengthFrames(65_535);
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const query of frames.push(chunk) ?? []) void answerOverTcp(socket, query);
    });
  });
  async function answerOverTcp(socket: Socket, query: Buffer): Promise<void> {
    for (const message of await answer(query, 'tcp')) socket.write(frame(message));
  }
  server.listen(wantedPort, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const datagrams = createSocket('udp4');
  datagrams.on('message', (query, sender) => {
    seen.push({ id: query.readUInt16BE(0), port: sender.port, query });
    void answerOverUdp(query, sender);
  });
  async function answerOverUdp(query: Buffer, { port: to, address: at }: RemoteInfo): Promise<void> {
    for (const message of await answer(query, 'udp')) datagrams.send(message, to, at);
  }
  datagrams.bind(port, address);
  await once(datagrams, 'listening');
  return {
    address,
    port,
    get connections() {
      return sockets.size;
    },
    seen,
    [Symbol.asyncDispose]: async () => {
      datagrams.close();
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
