import { PooledChunks } from '@svc/contract/channel';
import { connect as connectPlain, isIP, type Socket } from 'node:net';

/** A connection and its received chunks. The socket is read only on demand, so that the peer waits for a slow reader. */
export class SocketChunks {
  readonly socket: Socket;
  readonly #chunks = new PooledChunks(
    () => this.socket.resume(),
    (bytes) => Buffer.allocUnsafeSlow(bytes),
  );

  private constructor(open: (chunks: PooledChunks) => Socket) {
    this.socket = open(this.#chunks);
    this.socket.on('end', () => this.#chunks.finish());
    this.socket.on('error', (error) => this.#chunks.finish(error));
    this.socket.on('close', () => this.#chunks.finish());
  }

  static connect(host: string, port: number): SocketChunks {
    return new SocketChunks((chunks) =>
      connectPlain({
        host,
        port,
        noDelay: true,
        onread: {
          buffer: () => chunks.nextBuffer(),
          callback: (length, buffer) => chunks.take(buffer.subarray(0, length)),
        },
      }),
    );
  }

  /** The name is checked against the certificate. What is decrypted cannot be read into given buffers. */
  static connectSecurely(host: string, port: number): SocketChunks {
    const { connect } = process.getBuiltinModule('node:tls');
    return new SocketChunks((chunks) => {
      // Servers with several certificates, and proxies, choose by the name; addresses are not sent as names.
      const servername = isIP(host) === 0 ? host : '';
      const socket = connect({ host, port, servername });
      socket.setNoDelay(true);
      return socket.on('data', (chunk: Buffer) => {
        if (!chunks.take(chunk)) socket.pause();
      });
    });
  }

  /** Undefined at the end. A chunk is lent until the next one is asked for. @throws when the connection broke */
  async read(): Promise<Uint8Array | undefined> {
    return await this.#chunks.read();
  }
}
