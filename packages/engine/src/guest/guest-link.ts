import { once } from 'node:events';
import type { Socket } from 'node:net';
import { abortable } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import type { Message, Payload } from '@svc/contract/frames';
import { ControlConnection } from './control-connection.ts';
import { GuestServer } from './guest-server.ts';
import type { GuestStatus, Hello, ProcessOutput, ProcessState } from './guest-messages.ts';
import type { Preamble } from './preamble.ts';
import { TokenBuckets } from './token-buckets.ts';

/** Callbacks for the messages of svc-init, and before requests to it. */
export interface GuestListener {
  /** Before each request, and before a client gets a session. */
  asked(): void;
  /** svc-init is connected, for the first time or again. */
  connected(hello: Hello): void;
  disconnected(): void;
  status(status: GuestStatus): void;
  output(output: ProcessOutput): void;
  exited(state: ProcessState): void;
  /** A process died of SIGKILL: did the kernel kill it for memory? */
  wasOutOfMemory(): Promise<boolean>;
  /** A process failed: did the sandbox reach its limit of processes? */
  wereForksRefused(): boolean;
}

/** A connection to svc-init for one client; its first bytes are the handshake that the client expects. */
export interface GuestSession {
  readonly connection: number;
  readonly socket: Socket;
}

const DRAIN_MS = 500;
/** Session connections kept dialled, so that a client need not wait for one. */
const SPARE_SESSIONS = 2;
/** Longer than most processes start and run, so that they do not wait for svc-init to dial. */
const REPLACE_MS = 100;
/** A connection may be lost among many that were dialled at once, so it is requested again. */
const DIAL_AGAIN_MS = 250;

/**
 * The engine's end of the connections that svc-init dials (packages/init/PROTOCOL.md). Everything that
 * arrives is untrusted; token buckets limit how much time it takes.
 */
export class GuestLink {
  readonly #listener: GuestListener;
  readonly #buckets: TokenBuckets;
  readonly #spares: GuestSession[] = [];
  readonly #waiting: PromiseWithResolvers<GuestSession>[] = [];
  #control: ControlConnection | undefined;
  #spent = 0;
  #replacing: NodeJS.Timeout | undefined;

  #server: GuestServer | undefined;

  private constructor(listener: GuestListener, buckets: TokenBuckets) {
    this.#listener = listener;
    this.#buckets = buckets;
  }

  /** `buckets` are shared by all sandboxes of an engine. */
  static async listen(
    folder: string,
    token: string,
    listener: GuestListener,
    buckets = new TokenBuckets(),
  ): Promise<GuestLink> {
    const link = new GuestLink(listener, buckets);
    link.#server = await GuestServer.open(folder, token, buckets.create(), (preamble, socket) =>
      link.#enter(preamble, socket),
    );
    return link;
  }

  get isConnected(): boolean {
    return this.#control !== undefined;
  }

  request(type: string, payload: Payload, signal: AbortSignal): Promise<Message> {
    if (this.#control === undefined) throw notConnected();
    this.#listener.asked();
    return this.#control.request(type, payload, signal);
  }

  /** A request that does not wake a resting sandbox, which may answer late. */
  peek(type: string, signal: AbortSignal): Promise<Message> {
    if (this.#control === undefined) throw notConnected();
    return this.#control.request(type, {}, signal);
  }

  notify(type: string, payload: Payload): void {
    this.#control?.notify(type, payload);
  }

  /** A connection for one client. The caller owns it and ends it with `drop`. @throws PlatformError `unavailable` when svc-init is away */
  async takeSession(signal: AbortSignal): Promise<GuestSession> {
    if (this.#control === undefined) throw notConnected();
    this.#listener.asked();
    for (;;) {
      const spare = this.#spares.shift();
      if (spare === undefined) break;
      this.#replaceSpare();
      if (!spare.socket.destroyed) return spare;
    }
    this.notify('svc.dial', { count: 1 });
    const waiter = Promise.withResolvers<GuestSession>();
    this.#waiting.push(waiter);
    const again = setInterval(() => this.notify('svc.dial', { count: 1 }), DIAL_AGAIN_MS);
    try {
      return await abortable(waiter.promise, signal);
    } finally {
      clearInterval(again);
      const index = this.#waiting.indexOf(waiter);
      if (index >= 0) this.#waiting.splice(index, 1);
    }
  }

  /** The client has left: svc-init kills the processes that it started. */
  drop(session: GuestSession): void {
    this.notify('svc.drop', { connection: session.connection });
    session.socket.destroy();
  }

  /** After svc-init has ended: waits until clients have its last output, or for `DRAIN_MS`. */
  async drain(): Promise<void> {
    for (const spare of this.#spares) spare.socket.destroy();
    this.#server?.dropUnauthenticated();
    const closed = [...(this.#server?.sockets ?? [])].map((socket) =>
      once(socket, 'close').catch(() => undefined),
    );
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, DRAIN_MS);
    await Promise.race([Promise.all(closed), late]);
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    clearTimeout(this.#replacing);
    this.#spares.length = 0;
    await this.#server?.close();
  }

  #enter({ kind, connection }: Preamble, socket: Socket): void {
    if (kind === 'control') this.#useControl(socket);
    else this.#offer({ connection, socket });
  }

  #useControl(socket: Socket): void {
    this.#control?.close();
    const control = new ControlConnection(socket, this.#buckets.create(), {
      hello: (hello) => {
        control.notify('svc.dial', { count: SPARE_SESSIONS });
        this.#listener.connected(hello);
      },
      status: (status) => this.#listener.status(status),
      output: (output) => this.#listener.output(output),
      exited: (state) => this.#listener.exited(state),
      wasOutOfMemory: () => this.#listener.wasOutOfMemory(),
      wereForksRefused: () => this.#listener.wereForksRefused(),
      closed: () => {
        if (this.#control !== control) return;
        this.#control = undefined;
        this.#forgetSpares();
        for (const waiter of this.#waiting.splice(0)) waiter.reject(notConnected());
        this.#listener.disconnected();
      },
    });
    this.#forgetSpares();
    this.#control = control;
  }

  #offer(session: GuestSession): void {
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) waiter.resolve(session);
    else if (this.#spares.length < SPARE_SESSIONS * 2) this.#spares.push(session);
    else session.socket.destroy();
  }

  #replaceSpare(): void {
    this.#spent += 1;
    this.#replacing ??= setTimeout(() => {
      this.#replacing = undefined;
      this.notify('svc.dial', { count: this.#spent });
      this.#spent = 0;
    }, REPLACE_MS).unref();
  }

  /** Spares of a connection that ended belong to an svc-init that will dial new ones. */
  #forgetSpares(): void {
    for (const spare of this.#spares.splice(0)) spare.socket.destroy();
  }
}

function notConnected(): PlatformError {
  return new PlatformError(
    'unavailable',
    'the sandbox is not connected to its engine yet; try again in a moment',
  );
}
