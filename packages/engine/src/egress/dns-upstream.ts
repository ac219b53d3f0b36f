import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { LengthFrames, frame } from './length-frames.ts';
import type { Resolver } from './resolvers.ts';

export type Transport = 'udp' | 'tcp';

/** With more datagrams that do not answer the query the exchange counts as under attack, and fails. */
const MAX_FOREIGN_DATAGRAMS = 32;
const MAX_ANSWER_BYTES = 65_535;

/**
 * Sends one query and resolves with the first message that `accept` takes. Each exchange has its own connected socket, so the kernel
 * chooses a new random port and drops datagrams of other senders. Rejects after `timeoutMs`, and with the signal.
 */
export function exchange<T>(
  transport: Transport,
  resolver: Resolver,
  query: Buffer,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  accept: (message: Buffer) => T | null,
): Promise<T> {
  const open = transport === 'udp' ? openUdp : openTcp;
  return new Promise<T>((resolve, reject) => {
    let foreign = 0;
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      close();
      settle();
    };
    const fail = (error: Error) => finish(() => reject(error));
    const onAbort = () => fail(new Error('The sandbox is gone'));
    const timer = setTimeout(() => fail(new Error(`No answer within ${timeoutMs} ms`)), timeoutMs);
    const close = open(
      resolver,
      query,
      (message) => {
        const taken = accept(message);
        if (taken !== null) return finish(() => resolve(taken));
        foreign += 1;
        if (foreign > MAX_FOREIGN_DATAGRAMS)
          fail(new Error('Too many messages that do not answer the query'));
      },
      fail,
    );
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}

type Open = (
  resolver: Resolver,
  query: Buffer,
  onMessage: (message: Buffer) => void,
  onError: (error: Error) => void,
) => () => void;

const openUdp: Open = (resolver, query, onMessage, onError) => {
  const socket = createSocket(isIPv6(resolver.address) ? 'udp6' : 'udp4');
  let isOpen = true;
  socket.on('message', (message) => isOpen && onMessage(message));
  socket.on('error', (error) => isOpen && onError(error));
  socket.connect(resolver.port, resolver.address, () => {
    if (isOpen) socket.send(query);
  });
  return () => {
    if (!isOpen) return;
    isOpen = false;
    socket.close();
  };
};

const openTcp: Open = (resolver, query, onMessage, onError) => {
  const socket = connect({ host: resolver.address, port: resolver.port });
  const frames = new LengthFrames(MAX_ANSWER_BYTES);
  let isOpen = true;
  socket.on('data', (chunk) => {
    for (const message of frames.push(chunk) ?? []) if (isOpen) onMessage(message);
  });
  socket.on('error', (error) => isOpen && onError(error));
  socket.on('close', () => isOpen && onError(new Error('The resolver closed the connection')));
  socket.write(frame(query));
  return () => {
    isOpen = false;
    socket.destroy();
  };
};
