import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';

/** Closes one side after the other has closed. That one of them has sent all it has is passed on by the copying, not here. */
export function endTogether(one: Duplex, other: Duplex): void {
  const follow = (gone: Duplex, left: Duplex) => {
    gone.on('error', () => undefined); // `close` follows, and tells.
    gone.once('close', () => {
      if (gone.errored !== null || !gone.readableEnded) reset(left);
      // It took nothing more; what it had sent is still on its way to the other.
      else if (!left.readableEnded) left.end(() => left.destroy());
    });
  };
  follow(one, other);
  follow(other, one);
}

/** Ends a connection so that its peer notices: nothing more is read, written or flushed. */
export function reset(stream: Duplex): void {
  const isTcp = stream instanceof Socket && !(stream instanceof TLSSocket);
  if (isTcp && !stream.destroyed && !stream.connecting) stream.resetAndDestroy();
  else stream.destroy();
}
