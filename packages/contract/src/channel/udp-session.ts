import type { Message } from '../frames/frame.ts';
import { abortable, onAbort } from '../async/abort.ts';
import { ChannelError } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import { readBytes, readMessage } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

/**
 * A UDP socket inside the sandbox, connected to one port of its loopback.
 * - Datagrams may be lost in both directions, and a port without a listener is not reported.
 * - `send` resolves when the connection can take more.
 * - `closed` resolves when either side has closed the socket.
 */
export interface UdpSession {
  readonly closed: Promise<void>;
  send(datagram: Uint8Array): Promise<void>;
  close(): void;
}

/** `onDatagram` gets each answer; it may use the bytes only until it returns. */
export async function openUdp(
  connection: Connection,
  port: number,
  onDatagram: (datagram: Uint8Array) => void,
  signal: AbortSignal | undefined,
): Promise<UdpSession> {
  signal?.throwIfAborted();
  const socket = new UdpSocket(connection, onDatagram);
  const stop = onAbort(signal, () => socket.close());
  try {
    await abortable(connection.send(socket.id, 'svc.udp.open', { port }), signal);
    await abortable(socket.opened, signal);
    return socket;
  } finally {
    stop();
  }
}

class UdpSocket implements Session, UdpSession {
  readonly id: number;
  readonly #connection: Connection;
  readonly #onDatagram: (datagram: Uint8Array) => void;
  readonly #opened = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #isOver = false;

  constructor(connection: Connection, onDatagram: (datagram: Uint8Array) => void) {
    this.#connection = connection;
    this.#onDatagram = onDatagram;
    // Callers may ignore it: that must not be an unhandled rejection.
    this.#opened.promise.catch(() => undefined);
    this.id = connection.start(this);
  }

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async send(datagram: Uint8Array): Promise<void> {
    if (this.#isOver) throw new ChannelError('closed', 'The UDP socket is closed');
    await this.#connection.send(this.id, 'svc.udp.data', { data: datagram });
  }

  close(): void {
    if (this.#isOver) return;
    this.#connection.post(this.id, 'svc.udp.close', {});
    // The agent does not answer a close, so the id is freed here.
    this.#connection.forget(this.id);
    this.#finish(new ChannelError('closed', 'The UDP socket was closed'));
  }

  receive(message: Message): undefined {
    if (message.type === 'svc.udp.data') this.#onDatagram(readBytes(message.payload, 'data'));
    else if (message.type === 'svc.udp.opened') this.#opened.resolve();
    else if (message.type === 'core.error') this.#finish(refusal(message));
    else if (message.type === 'svc.udp.failed') {
      const reason = readMessage(message.payload, 'error') || 'The socket could not be opened';
      this.#finish(new ChannelError('refused', reason));
    }
    return undefined;
  }

  lost(error: ChannelError): void {
    this.#finish(error);
  }

  #finish(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#opened.reject(error);
    this.#closed.resolve();
  }
}
