import type { Socket } from 'node:net';

/** With its end; RFC 4253, 4.2. */
const MAX_LINE_BYTES = 255;
const LINE_END = 0x0a;

type OnData = (chunk: Buffer) => void;

/**
 * Holds back what a client sends until its first line is whole, and ends a connection whose line is too long. ssh2 remembers the first
 * piece of it alone, so that a line in three pieces or more, as slow networks make them, would end the connection.
 * It is for whoever listens to the socket next, which is ssh2, a moment after it was given the socket.
 */
export function gatherVersionLine(socket: Socket): void {
  const onListener = (event: string | symbol, listener: OnData) => {
    if (event !== 'data') return;
    socket.off('newListener', onListener);
    // The listener is told of before it is there. Nothing is read until then: ssh2 has paused the socket.
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
