import { timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { removeFile } from '../host/run-files.ts';
import { readPreamble, type Preamble } from './preamble.ts';
import type { TokenBucket } from './token-buckets.ts';

/** svc-init has at most 256 session connections, its control connection, and some that are being replaced. */
const MAX_CONNECTIONS = 320;
/**
 * Any process of the guest can dial our socket. svc-init shows its token at once; of connections without a token only the newest are
 * kept, so that a guest can neither use up our descriptors nor keep its svc-init out.
 */
const MAX_UNAUTHENTICATED = 64;
/** Accepting and dropping a connection costs as much as this many bytes of output. */
const CONNECTION_COST = 16 * 1024;
/** The socket is opened again when this many connections are affordable: svc-init, which dials every few milliseconds, is among them. */
const REOPEN_FOR = (MAX_UNAUTHENTICATED / 2) * CONNECTION_COST;
const CLOSED_MS = 500;
/** svc-init dials again when the backlog is full. */
const BACKLOG = 128;

/**
 * Listens on `engine.sock` in the folder that the sandbox sees read-only, and accepts connections that show the token. When a guest dials
 * too often the socket is closed, so that the kernel refuses it, until the guest's token bucket has filled again.
 */
export class GuestServer {
  readonly #path: string;
  readonly #token: Buffer;
  readonly #bucket: TokenBucket;
  readonly #onAuthenticated: (preamble: Preamble, socket: Socket) => void;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections that have not shown the token, oldest first. */
  readonly #unauthenticated = new Set<Socket>();
  #reopening: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(
    path: string,
    token: Buffer,
    bucket: TokenBucket,
    onAuthenticated: (preamble: Preamble, socket: Socket) => void,
  ) {
    this.#path = path;
    this.#token = token;
    this.#bucket = bucket;
    this.#onAuthenticated = onAuthenticated;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = MAX_CONNECTIONS;
    // A listening socket that fails later only stops accepting; the connections that exist go on.
    this.#server.on('error', () => {});
  }

  /** `onAuthenticated` gets each socket of svc-init, paused behind its preamble. */
  static async open(
    folder: string,
    token: string,
    bucket: TokenBucket,
    onAuthenticated: (preamble: Preamble, socket: Socket) => void,
  ): Promise<GuestServer> {
    const path = join(folder, 'engine.sock');
    const server = new GuestServer(path, Buffer.from(token, 'hex'), bucket, onAuthenticated);
    await server.#listen();
    return server;
  }

  /** All connections, authenticated or not. */
  get sockets(): ReadonlySet<Socket> {
    return this.#sockets;
  }

  dropUnauthenticated(): void {
    for (const socket of this.#unauthenticated) socket.destroy();
  }

  /** Ends every connection too. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#reopening);
    this.#bucket.release();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #listen(): Promise<void> {
    if (existsSync(this.#path)) removeFile(this.#path);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen({ path: this.#path, backlog: BACKLOG }, resolve);
    await promise;
    this.#server.off('error', reject);
    // Root inside the sandbox is not root here, so any id may connect; the token authenticates.
    chmodSync(this.#path, 0o666);
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    this.#unauthenticated.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#unauthenticated.delete(socket);
    });
    readPreamble(socket).then(
      (preamble) => this.#authenticate(preamble, socket),
      () => socket.destroy(),
    );
    this.#bucket.spend(CONNECTION_COST);
    this.#limitUnauthenticated();
    if (this.#bucket.waitMs() > 0) this.#stopListening();
  }

  #authenticate(preamble: Preamble, socket: Socket): void {
    this.#unauthenticated.delete(socket);
    if (!timingSafeEqual(preamble.token, this.#token)) return void socket.destroy();
    // An authenticated connection costs nothing.
    this.#bucket.spend(-CONNECTION_COST);
    this.#onAuthenticated(preamble, socket);
  }

  #limitUnauthenticated(): void {
    for (const oldest of this.#unauthenticated) {
      if (this.#unauthenticated.size <= MAX_UNAUTHENTICATED) return;
      this.#unauthenticated.delete(oldest);
      oldest.destroy();
    }
  }

  /** The kernel refuses new connections and those in the backlog; accepted ones stay. */
  #stopListening(): void {
    if (this.#reopening !== undefined || this.#isClosed) return;
    this.#server.close();
    const afterMs = Math.max(CLOSED_MS, this.#bucket.waitMs(REOPEN_FOR));
    this.#reopening = setTimeout(() => void this.#reopen(), afterMs).unref();
  }

  async #reopen(): Promise<void> {
    try {
      await this.#listen();
      this.#reopening = undefined;
    } catch {
      // The folder is gone with its sandbox, or the host is short of something: tried again until it is closed.
      if (!this.#isClosed) this.#reopening = setTimeout(() => void this.#reopen(), CLOSED_MS).unref();
    }
    if (this.#isClosed) this.#server.close();
  }
}
