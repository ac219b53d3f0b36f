import type { Socket } from 'node:net';

/** Including the line end; RFC 4253, 4.2. */
const MAX_LINE_BYTES = 255;
const LINE_END = 0x0a;

type OnData = (chunk: Buffer) => void;

/**
 * Buffers the first line of a client until it is complete, and ends a connection whose line is too long. ssh2 keeps
 * only the first chunk of it, so a line in three or more chunks, as on slow networks, would end the connection.
 * Call it before ssh2 gets the socket: it wraps the next listener.
 */
export function gatherVersionLine(socket: Socket): void {
  const onListener = (event: string | symbol, listener: OnData) => {
    if (event !== 'data') return;
    socket.off('newListener', onListener);
    // The event fires before the listener is added. Nothing is read until then: ssh2 has paused the socket.
    process.nextTick(() => takePlaceOf(socket, listener));
  };
  socket.on('newListener', onListener);
}

function takePlaceOf(socket: Socket, listener: OnData): void {
  let held = Buffer.alloc(0);
  const gather = (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    const end = held.indexOf(LINE_END);
    const length = end < 0 ? held.length : end + 1;
    if (length > MAX_LINE_BYTES) socket.destroy();
    if (end < 0 || socket.destroyed) return;
    socket.off('data', gather);
    socket.on('data', listener);
    listener.call(socket, held);
  };
  socket.off('data', listener);
  socket.on('data', gather);
}
