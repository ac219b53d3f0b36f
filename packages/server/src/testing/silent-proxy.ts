import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Forwards TCP connections to a unix socket. Silenced, it accepts connections and bytes and forwards neither, like a host that hangs. */
export class SilentProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isSilent = false;

  private constructor(target: string) {
    this.#server = createServer((client) => this.#join(client, connect(target)));
  }

  static async start(target: string): Promise<SilentProxy> {
    const proxy = new SilentProxy(target);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get port(): number {
    // It listens on a TCP port, so its address is of this kind.
    return (this.#server.address() as AddressInfo).port;
  }

  silence(): void {
    this.#isSilent = true;
    for (const [client, upstream] of this.#pairs) this.#hold(client, upstream);
  }

  speak(): void {
    this.#isSilent = false;
    for (const [client, upstream] of this.#pairs) forward(client, upstream);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [client, upstream] of this.#pairs) for (const end of [client, upstream]) end.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket, upstream: Socket): void {
    const pair = [client, upstream] as const;
    this.#pairs.add(pair);
    for (const [end, other] of [pair, [upstream, client]] as const) {
      // The close event of each end handles the error.
      end.on('error', () => undefined);
      end.once('close', () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
    if (!this.#isSilent) forward(client, upstream);
  }

  #hold(client: Socket, upstream: Socket): void {
    client.unpipe(upstream).pause();
    upstream.unpipe(client).pause();
  }
}

function forward(client: Socket, upstream: Socket): void {
  client.pipe(upstream);
  upstream.pipe(client);
}
