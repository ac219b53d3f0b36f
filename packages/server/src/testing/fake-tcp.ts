import { connect, type Socket } from 'node:net';
import type { Message, Payload } from '@svc/contract';

type Send = (id: number, type: string, payload: Payload) => void;

/** TCP connections of a fake agent: real ones to services of this host, which the test itself started. */
export class FakeTcp {
  readonly #sockets = new Map<number, Socket>();
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  receive({ id, type, payload }: Message): void {
    const socket = this.#sockets.get(id);
    if (type === 'core.tcp.connect') this.#connect(id, String(payload['host']), Number(payload['port']));
    else if (type === 'core.tcp.data') socket?.write(payload['data'] as Uint8Array);
    else if (type === 'core.tcp.eof') socket?.end();
    else if (type === 'core.tcp.close') socket?.destroy();
  }

  destroy(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  #connect(id: number, host: string, port: number): void {
    const socket = connect({ host, port, allowHalfOpen: true });
    this.#sockets.set(id, socket);
    let failure: Error | undefined;
    socket.on('connect', () => this.#send(id, 'core.tcp.connected', {}));
    socket.on('data', (data) => this.#send(id, 'core.tcp.data', { data }));
    socket.on('end', () => this.#send(id, 'core.tcp.eof', {}));
    socket.on('error', (error) => (failure = error));
    socket.on('close', () => {
      this.#sockets.delete(id);
      if (failure === undefined) this.#send(id, 'core.tcp.closed', {});
      else this.#send(id, 'core.tcp.failed', { error: failure.message });
    });
  }
}
