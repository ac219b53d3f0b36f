import type { Message } from '../frames/frame.ts';
import { abortable, onAbort } from '../async/abort.ts';
import { ChannelError } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import { readBytes, readMessage } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

/**
 * A UDP socket inside the sandbox, connected to one port of its loopback.
 * - Datagrams may be lost on the way in and out, as datagrams are; whether anybody listens is not told.
 * - `send` resolves when the connection can take more.
 * - `closed` resolves when the socket is gone, whoever closed it.
 */
export interface UdpSession {
  readonly closed: Promise<void>;
  send(datagram: Uint8Array): Promise<void>;
  close(): void;
}

/** `onDatagram` is given what comes back; the bytes are its own only until it returns. */
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
    // Nobody has to wait for it.
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
    // The agent owes no answer to a close, so nothing would ever free the id.
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
