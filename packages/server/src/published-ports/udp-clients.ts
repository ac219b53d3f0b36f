import type { ChannelClient, UdpSession } from '@svc/contract';
import type { PortTarget } from './open-port.ts';

export interface UdpAddress {
  readonly address: string;
  readonly port: number;
}

export interface UdpLimits {
  readonly maxClients: number;
  /** A client without datagrams in both directions for so long is dropped. */
  readonly idleMs: number;
  /** When all places are taken, a new client replaces one that was idle for this long. */
  readonly yieldMs: number;
  /** Limit of queued datagrams of all clients together; more are dropped. */
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
  /** Pause after the sandbox could not be reached. */
  readonly retryMs: number;
}

export const DEFAULT_UDP_LIMITS: UdpLimits = {
  maxClients: 256,
  idleMs: 60_000,
  yieldMs: 5000,
  maxQueued: 1024,
  maxQueuedBytes: 4 * 1024 * 1024,
  retryMs: 500,
};

/**
 * The clients of one published UDP port, each with a socket inside the sandbox through which the service sees it and answers. Clients of
 * one port share a channel, which is open while there are any.
 * - The sandbox can send to these clients only, and only while they are known.
 * - Nothing waits: datagrams over a limit are dropped.
 */
export class UdpClients {
  readonly #target: PortTarget;
  readonly #reply: (datagram: Uint8Array, client: UdpAddress) => void;
  readonly #limits: UdpLimits;
  /** In the order of their last datagram, the longest idle first. */
  readonly #clients = new Map<string, Client>();
  readonly #sweep: NodeJS.Timeout;
  #channel: Promise<ChannelClient> | undefined;
  #retryAt = 0;
  #queued = 0;
  #queuedBytes = 0;
  #isClosed = false;

  constructor(
    target: PortTarget,
    reply: (datagram: Uint8Array, client: UdpAddress) => void,
    limits: UdpLimits = DEFAULT_UDP_LIMITS,
  ) {
    this.#target = target;
    this.#reply = reply;
    this.#limits = limits;
    this.#sweep = setInterval(() => this.#forgetIdle(), limits.idleMs / 2);
    this.#sweep.unref();
  }

  take(from: UdpAddress, datagram: Uint8Array): void {
    if (this.#isClosed || performance.now() < this.#retryAt || !this.#hasRoom(datagram)) return;
    const key = `${from.address} ${from.port}`;
    const client = this.#clients.get(key) ?? this.#admit(key, from);
    if (client === undefined) return;
    this.#touch(key, client);
    void this.#send(key, client, datagram);
  }

  get size(): number {
    return this.#clients.size;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    this.#clients.clear();
    this.#closeChannel();
  }

  #hasRoom(datagram: Uint8Array): boolean {
    const { maxQueued, maxQueuedBytes } = this.#limits;
    return this.#queued < maxQueued && this.#queuedBytes + datagram.length <= maxQueuedBytes;
  }

  /** Undefined when all places are taken by active clients, which new ones must not replace. */
  #admit(key: string, from: UdpAddress): Client | undefined {
    const { maxClients, yieldMs } = this.#limits;
    const [quietest] = this.#clients;
    if (this.#clients.size >= maxClients && quietest !== undefined) {
      if (performance.now() - quietest[1].heardAt < yieldMs) return undefined;
      this.#forget(...quietest);
    }
    const client: Client = { heardAt: 0, session: this.#open(key, from) };
    // If the session cannot be opened, each send fails with that; here it would only be an unhandled rejection.
    client.session.catch(() => undefined);
    return client;
  }

  async #open(key: string, from: UdpAddress): Promise<UdpSession> {
    this.#channel ??= this.#openChannel();
    const channel = await this.#channel;
    const session = await channel.openUdp(this.#target.guestPort, (datagram) => {
      const client = this.#clients.get(key);
      if (client === undefined) return;
      this.#touch(key, client);
      // Copied, because the buffer is valid only until we return, and the socket sends later.
      this.#reply(Uint8Array.from(datagram), from);
    });
    return session;
  }

  /** When it ends with the sandbox or the engine, clients get a new session with their next datagram. */
  #openChannel(): Promise<ChannelClient> {
    const opening = this.#target.openChannel();
    const forget = () => {
      if (this.#channel !== opening) return;
      this.#channel = undefined;
      this.#clients.clear();
    };
    void opening.then((channel) => channel.closed).then(forget, forget);
    return opening;
  }

  async #send(key: string, client: Client, datagram: Uint8Array): Promise<void> {
    this.#queued += 1;
    this.#queuedBytes += datagram.length;
    try {
      await (await client.session).send(datagram);
    } catch (error) {
      const { sandboxId, guestPort, logger } = this.#target;
      logger.debug({ sandboxId, guestPort, err: error }, 'datagrams of a client were lost');
      this.#retryAt = performance.now() + this.#limits.retryMs;
      if (this.#clients.get(key) === client) this.#clients.delete(key);
      if (this.#clients.size === 0) this.#closeChannel();
    } finally {
      this.#queued -= 1;
      this.#queuedBytes -= datagram.length;
    }
  }

  #touch(key: string, client: Client): void {
    client.heardAt = performance.now();
    this.#clients.delete(key);
    this.#clients.set(key, client);
  }

  #forgetIdle(): void {
    const before = performance.now() - this.#limits.idleMs;
    for (const [key, client] of this.#clients) {
      if (client.heardAt > before) break;
      this.#forget(key, client);
    }
    if (this.#clients.size === 0) this.#closeChannel();
  }

  #forget(key: string, client: Client): void {
    this.#clients.delete(key);
    client.session.then(
      (session) => session.close(),
      () => undefined,
    );
  }

  #closeChannel(): void {
    const channel = this.#channel;
    this.#channel = undefined;
    channel?.then(
      (open) => open.close(),
      () => undefined,
    );
  }
}

interface Client {
  /** Time of the last datagram in either direction. */
  heardAt: number;
  readonly session: Promise<UdpSession>;
}
