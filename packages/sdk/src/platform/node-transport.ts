import { randomFillSync } from 'node:crypto';
import type { Socket } from 'node:net';
import { applyMask } from '@svc/contract/channel';
import type { SocketChunks } from './socket-chunks.ts';
import { errorOfClose } from './error-of-close.ts';
import type { DialledTransport } from './platform.ts';
import { encodeHead, FrameReader, OPCODE, type ControlFrame } from './web-socket-frames.ts';

const CLOSE_NORMAL = 1000;
/** Up to here one write of head and payload together is cheaper than two. */
const JOINED_BYTES = 16 * 1024;
const MASK_POOL_BYTES = 4096;
/** How long a peer may take to answer a close. */
const CLOSE_MS = 1000;
/** Interval of unsolicited pongs: while a slow reader stalls the connection, pings of the server are not read. */
const PONG_MS = 10_000;

/** A WebSocket over a socket whose upgrade is done; `early` is what followed the upgrade's answer. */
export class NodeTransport implements DialledTransport {
  readonly readable: AsyncIterable<Uint8Array>;
  readonly #chunks: SocketChunks;
  readonly #socket: Socket;
  readonly #frames = new FrameReader();
  readonly #masks = new MaskPool();
  #lastWrite: Promise<void> | undefined;

  constructor(chunks: SocketChunks, early: Uint8Array) {
    this.#chunks = chunks;
    this.#socket = chunks.socket;
    this.readable = this.#read(early);
    const pongs = setInterval(() => this.#sendControl(OPCODE.pong, new Uint8Array(0)), PONG_MS);
    pongs.unref();
    this.#socket.once('close', () => clearInterval(pongs));
  }

  /** While the socket has no room, callers wait here in their order. */
  write(bytes: Uint8Array): Promise<void> {
    const work =
      this.#lastWrite?.then(() => this.#send(OPCODE.binary, bytes)) ?? this.#send(OPCODE.binary, bytes);
    const settle = (): void => {
      if (this.#lastWrite === work) this.#lastWrite = undefined;
    };
    this.#lastWrite = work;
    work.then(settle, settle);
    return work;
  }

  /** Sends a close frame to the peer and does not wait for its answer. */
  close(): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    this.#sendControl(OPCODE.close, Uint8Array.of(CLOSE_NORMAL >> 8, CLOSE_NORMAL & 0xff));
    this.#socket.end();
    this.#socket.resume();
    const timer = setTimeout(() => this.#socket.destroy(), CLOSE_MS);
    timer.unref();
    this.#socket.unref();
    this.#socket.once('close', () => clearTimeout(timer));
  }

  setInUse(isInUse: boolean): void {
    if (isInUse) this.#socket.ref();
    else this.#socket.unref();
  }

  async *#read(early: Uint8Array): AsyncGenerator<Uint8Array, void> {
    for (let chunk: Uint8Array | undefined = early; chunk !== undefined; chunk = await this.#chunks.read()) {
      const { data, control } = this.#frames.push(chunk);
      yield* data;
      for (const frame of control) {
        if (frame.opcode === OPCODE.ping) this.#sendControl(OPCODE.pong, frame.payload);
        if (frame.opcode === OPCODE.close) {
          this.#socket.destroy();
          requireNormalClose(frame);
          return;
        }
      }
    }
  }

  #sendControl(opcode: number, payload: Uint8Array): void {
    // A peer that is gone needs no answer; the reader gets the error.
    this.#send(opcode, payload).catch(() => undefined);
  }

  async #send(opcode: number, payload: Uint8Array): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) throw new Error('The connection is closed');
    const mask = this.#masks.next();
    const head = encodeHead(opcode, payload.length, mask);
    applyMask(payload, mask);
    if (writeFrame(socket, head, payload)) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settle = (): void => {
      socket.off('drain', settle);
      socket.off('close', settle);
      if (socket.destroyed) reject(new Error('The connection was closed'));
      else resolve();
    };
    socket.on('drain', settle);
    socket.on('close', settle);
    await promise;
  }
}

function writeFrame(socket: Socket, head: Uint8Array, payload: Uint8Array): boolean {
  if (payload.length <= JOINED_BYTES) {
    const frame = new Uint8Array(head.length + payload.length);
    frame.set(head);
    frame.set(payload, head.length);
    return socket.write(frame);
  }
  socket.cork();
  socket.write(head);
  const hasRoom = socket.write(payload);
  socket.uncork();
  return hasRoom;
}

function requireNormalClose({ payload }: ControlFrame): void {
  if (payload.length < 2) return;
  const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
  if (code === CLOSE_NORMAL) return;
  throw errorOfClose(code, new TextDecoder().decode(payload.subarray(2)));
}

/** Masks must be unpredictable, and fetching four random bytes each time is slow. */
class MaskPool {
  readonly #pool = new Uint8Array(MASK_POOL_BYTES);
  #position = MASK_POOL_BYTES;

  next(): Uint8Array {
    if (this.#position === MASK_POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#position = 0;
    }
    this.#position += 4;
    return this.#pool.slice(this.#position - 4, this.#position);
  }
}
