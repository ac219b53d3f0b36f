import { timingSafeEqual } from 'node:crypto';
import { chmodSync, existsSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { removeFile } from '../host/run-files.ts';
import { readPreamble, type Preamble } from './preamble.ts';
import type { ThreadShare } from './thread-budget.ts';

/** svc-init has at most 256 session connections, its control connection, and some that are being replaced. */
const MAX_CONNECTIONS = 320;
/**
 * Any process of the guest can dial our socket. svc-init shows its token at once; of those that have shown none only so many are
 * kept, the newest, so that a guest can neither use up our descriptors nor keep its svc-init out.
 */
const MAX_STRANGERS = 64;
/** To take a connection and drop it again costs as much as so many bytes of output. */
const STRANGER_COST = 16 * 1024;
/** Of which so many can be taken when the door opens again: svc-init, which knocks every few milliseconds, is among them. */
const REOPEN_FOR = (MAX_STRANGERS / 2) * STRANGER_COST;
const SHUT_MS = 500;
/** Who waits to be let in; svc-init tries again when there is no room. */
const BACKLOG = 128;

/**
 * The socket `engine.sock` in the folder that the sandbox sees read-only, and who may come in: whoever shows the token. A guest that
 * dials it without end finds it gone after a while, and the kernel alone tells it so; it is back when the guest's share of our time is.
 */
export class GuestDoor {
  readonly #path: string;
  readonly #token: Buffer;
  readonly #share: ThreadShare;
  readonly #onEntered: (preamble: Preamble, socket: Socket) => void;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections that have not shown the token, oldest first. */
  readonly #strangers = new Set<Socket>();
  #reopening: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(
    path: string,
    token: Buffer,
    share: ThreadShare,
    onEntered: (preamble: Preamble, socket: Socket) => void,
  ) {
    this.#path = path;
    this.#token = token;
    this.#share = share;
    this.#onEntered = onEntered;
    this.#server = createServer({ pauseOnConnect: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = MAX_CONNECTIONS;
    // A listening socket that fails later only stops accepting; the connections that exist go on.
    this.#server.on('error', () => {});
  }

  /** `onEntered` gets each socket of svc-init, paused behind its preamble. */
  static async open(
    folder: string,
    token: string,
    share: ThreadShare,
    onEntered: (preamble: Preamble, socket: Socket) => void,
  ): Promise<GuestDoor> {
    const path = join(folder, 'engine.sock');
    const door = new GuestDoor(path, Buffer.from(token, 'hex'), share, onEntered);
    await door.#listen();
    return door;
  }

  /** All connections, whoever they are of. */
  get sockets(): ReadonlySet<Socket> {
    return this.#sockets;
  }

  dropStrangers(): void {
    for (const stranger of this.#strangers) stranger.destroy();
  }

  /** Ends every connection too. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#reopening);
    this.#share.release();
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
    // Root inside the sandbox is not root here, so the socket is open to all; the token decides who is heard.
    chmodSync(this.#path, 0o666);
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    this.#strangers.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#strangers.delete(socket);
    });
    readPreamble(socket).then(
      (preamble) => this.#judge(preamble, socket),
      () => socket.destroy(),
    );
    this.#share.spend(STRANGER_COST);
    this.#limitStrangers();
    if (this.#share.waitMs() > 0) this.#shut();
  }

  #judge(preamble: Preamble, socket: Socket): void {
    this.#strangers.delete(socket);
    if (!timingSafeEqual(preamble.token, this.#token)) return void socket.destroy();
    // Who belongs here has cost nothing.
    this.#share.spend(-STRANGER_COST);
    this.#onEntered(preamble, socket);
  }

  #limitStrangers(): void {
    for (const oldest of this.#strangers) {
      if (this.#strangers.size <= MAX_STRANGERS) return;
      this.#strangers.delete(oldest);
      oldest.destroy();
    }
  }

  /** The kernel refuses whoever knocks, those included that wait already; who is in stays. */
  #shut(): void {
    if (this.#reopening !== undefined || this.#isClosed) return;
    this.#server.close();
    const afterMs = Math.max(SHUT_MS, this.#share.waitMs(REOPEN_FOR));
    this.#reopening = setTimeout(() => void this.#reopen(), afterMs).unref();
  }

  async #reopen(): Promise<void> {
    try {
      await this.#listen();
      this.#reopening = undefined;
    } catch {
      // The folder is gone with its sandbox, or the host is short of something: tried again until it is closed.
      if (!this.#isClosed) this.#reopening = setTimeout(() => void this.#reopen(), SHUT_MS).unref();
    }
    if (this.#isClosed) this.#server.close();
  }
}
