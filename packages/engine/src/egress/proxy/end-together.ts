import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/** Destroys one side after the other was closed. Half closes are passed on by the copying, not here. */
export function endTogether(one: Duplex, other: Duplex): void {
  const follow = (gone: Duplex, left: Duplex) => {
    gone.on('error', () => undefined); // `close` follows, and tells.
    gone.once('close', () => {
      if (gone.errored !== null || !gone.readableEnded) reset(left);
      // The side that closed reads nothing more; bytes that it sent before are still delivered.
      else if (!left.readableEnded) left.end(() => left.destroy());
    });
  };
  follow(one, other);
  follow(other, one);
}

/** Resets a connection: its peer sees an error, and nothing more is read, written or flushed. */
export function reset(stream: Duplex): void {
  const isTcp = stream instanceof Socket && !(stream instanceof TLSSocket);
  if (isTcp && !stream.destroyed && !stream.connecting) stream.resetAndDestroy();
  else stream.destroy();
}
