import { Duplex } from 'node:stream';
import type { ChannelClient, TcpStream } from '@svc/contract/channel';

/**
 * A TCP connection in a sandbox as a stream of Node's. It has a channel of its own, so that a slow reader holds up nobody
 * else, and both end together.
 */
export function channelSocket(channel: ChannelClient, connection: TcpStream): Duplex {
  const reader = connection.readable[Symbol.asyncIterator]();
  const socket = new Duplex({
    allowHalfOpen: true,
    read: () => {
      reader.next().then(
        ({ done, value }) => socket.push(done === true ? null : value),
        (error: unknown) => socket.destroy(error as Error),
      );
    },
    write: (chunk: Uint8Array, _encoding, done) => void settle(connection.write(chunk), done),
    final: (done) => void settle(connection.end(), done),
    destroy: (error, done) => {
      connection.close();
      channel.close();
      done(error);
    },
  });
  return socket;
}

async function settle(work: Promise<void>, done: (error?: Error | null) => void): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason as Error,
  );
  done(error);
}
