import type { TcpStream } from '@svc/contract/channel';
import type { ServerChannel } from 'ssh2';
import { readHalf } from '../../published-ports/read-half.ts';
import type { SshOutput } from './ssh-output.ts';

/** Joins a connection that the client forwards to one that the sandbox made, until both directions have ended. */
export async function forwardTcp(
  stream: ServerChannel,
  output: SshOutput,
  target: TcpStream,
  onReceived: (bytes: number) => void,
): Promise<void> {
  await Promise.all([
    output.pump(target.readable).then(() => {
      // Only our half: the client may have more to send.
      stream.eof();
    }),
    sendAll(stream, target, onReceived),
  ]);
}

async function sendAll(
  stream: ServerChannel,
  target: TcpStream,
  onReceived: (bytes: number) => void,
): Promise<void> {
  for await (const chunk of readHalf(stream)) {
    onReceived(chunk.length);
    await target.write(chunk);
  }
  await target.end();
}
