import { once } from 'node:events';
import { timingSafeEqual } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { abortable } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import type { Message, Payload } from '@svc/contract/frames';
import { ControlConnection } from './control-connection.ts';
import type { GuestStatus, Hello, ProcessOutput, ProcessState } from './guest-messages.ts';
import { readPreamble } from './preamble.ts';

/** What a sandbox tells its engine. */
export interface GuestListener {
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
const REPLACE_MS = 10;
/** A connection may be lost on the way, among many that were dialled at once: it is asked for again. */
const DIAL_AGAIN_MS = 250;
/** svc-init has at most 256 session connections, its control connection, and some that are being replaced. */
const MAX_CONNECTIONS = 320;
/**
 * Any process of the guest can dial our socket. svc-init shows its token at once; of those that have shown none only so many are
 * kept, the newest, so that a guest can neither use up our descriptors nor keep its svc-init out.
 */
const MAX_STRANGERS = 16;

/**
 * The engine's end of the connections that svc-init dials (packages/init/PROTOCOL.md). Listens on `engine.sock` in the
 * folder that the sandbox sees read-only. Everything that arrives is untrusted.
 */
export class GuestLink {
  readonly #server: Server;
  readonly #token: Buffer;
  readonly #listener: GuestListener;
  readonly #sockets = new Set<Socket>();
  /** Connections that have not shown the token, oldest first. */
  readonly #strangers = new Set<Socket>();
  readonly #spares: GuestSession[] = [];
  readonly #waiting: ((session: GuestSession) => void)[] = [];
  #control: ControlConnection | undefined;
  #spent = 0;
  #replacing: NodeJS.Timeout | undefined;

  private constructor(token: string, listener: GuestListener) {
    this.#token = Buffer.from(token, 'hex');
    this.#listener = listener;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  static async listen(folder: string, token: string, listener: GuestListener): Promise<GuestLink> {
    const link = new GuestLink(token, listener);
    const path = join(folder, 'engine.sock');
    await rm(path, { force: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    link.#server.once('error', reject);
    link.#server.listen(path, resolve);
    await promise;
    link.#server.off('error', reject);
    // A listening socket that fails later only stops accepting; the connections that exist go on.
    link.#server.on('error', () => {});
    // Root inside the sandbox is not root here, so the socket is open to all; the token decides who is heard.
    await chmod(path, 0o666);
    return link;
  }

  get isConnected(): boolean {
    return this.#control !== undefined;
  }

  request(type: string, payload: Payload, signal: AbortSignal): Promise<Message> {
    if (this.#control === undefined) throw notConnected();
    return this.#control.request(type, payload, signal);
  }

  notify(type: string, payload: Payload): void {
    this.#control?.notify(type, payload);
  }

  /** A connection for one client. The caller owns it and ends it with `drop`. */
  async takeSession(signal: AbortSignal): Promise<GuestSession> {
    if (this.#control === undefined) throw notConnected();
    for (;;) {
      const spare = this.#spares.shift();
      if (spare === undefined) break;
      this.#replaceSpare();
      if (!spare.socket.destroyed) return spare;
    }
    this.notify('svc.dial', { count: 1 });
    const { promise, resolve } = Promise.withResolvers<GuestSession>();
    this.#waiting.push(resolve);
    const again = setInterval(() => this.notify('svc.dial', { count: 1 }), DIAL_AGAIN_MS);
    try {
      return await abortable(promise, signal);
    } finally {
      clearInterval(again);
      const index = this.#waiting.indexOf(resolve);
      if (index >= 0) this.#waiting.splice(index, 1);
    }
  }

  /** The client has left: svc-init kills what it started. */
  drop(session: GuestSession): void {
    this.notify('svc.drop', { connection: session.connection });
    session.socket.destroy();
  }

  /** After svc-init has ended: until clients have what it said last, or the time is over. */
  async drain(): Promise<void> {
    for (const spare of this.#spares) spare.socket.destroy();
    for (const stranger of this.#strangers) stranger.destroy();
    const closed = [...this.#sockets].map((socket) => once(socket, 'close').catch(() => undefined));
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, DRAIN_MS);
    await Promise.race([Promise.all(closed), late]);
    clearTimeout(timer);
  }

  async close(): Promise<void> {
    clearTimeout(this.#replacing);
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#spares.length = 0;
    await closed;
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#strangers.delete(socket);
    });
    this.#limitStrangers(socket);
    readPreamble(socket).then(
      ({ kind, connection, token }) => {
        this.#strangers.delete(socket);
        if (!timingSafeEqual(token, this.#token)) socket.destroy();
        else if (kind === 'control') this.#useControl(socket);
        else this.#offer({ connection, socket });
      },
      () => socket.destroy(),
    );
  }

  #limitStrangers(newest: Socket): void {
    this.#strangers.add(newest);
    for (const oldest of this.#strangers) {
      if (this.#strangers.size <= MAX_STRANGERS) return;
      this.#strangers.delete(oldest);
      oldest.destroy();
    }
  }

  #useControl(socket: Socket): void {
    this.#control?.close();
    const control = new ControlConnection(socket, {
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
        this.#listener.disconnected();
      },
    });
    this.#forgetSpares();
    this.#control = control;
  }

  #offer(session: GuestSession): void {
    const waiter = this.#waiting.shift();
    if (waiter !== undefined) waiter(session);
    else if (this.#spares.length < SPARE_SESSIONS * 2) this.#spares.push(session);
    else session.socket.destroy();
  }

  /** A moment later: the first process of the client that took it should not wait for svc-init to dial. */
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
