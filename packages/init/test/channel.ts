import type { Socket } from 'node:net';
import { decode, encode } from 'cborg';

export type Payload = Record<string, unknown>;
export interface Frame {
  readonly id: number;
  readonly flags: number;
  readonly type: string;
  readonly payload: Payload;
}

/** Longer than stalls of a busy machine. */
export const TIMEOUT_MS = 60_000;

const FLAGS: Readonly<Record<string, number>> = {
  'core.exec.request': 2,
  'core.fs.request': 2,
  'core.tcp.connect': 2,
  'svc.udp.open': 2,
  'core.shutdown': 4,
  'svc.detached.start': 2,
  'svc.watch.start': 2,
};

export function encodeFrame(id: number, type: string, payload: Payload, flags = FLAGS[type] ?? 0): Buffer {
  return rawFrame(id, flags, encode({ v: 7, t: type, p: encode(payload) }));
}

export function rawFrame(id: number, flags: number, body: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUInt32BE(5 + body.length, 0);
  head.writeUInt32BE(id, 4);
  head[8] = flags;
  return Buffer.concat([head, body]);
}

/** One connection that svc-init dialled, past its preamble. Frames are kept until a test asks for them. */
export class Channel {
  readonly number: number;
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  ended = false;
  bytesReceived = 0;
  #buffered: Buffer[] = [];
  #size = 0;
  #wake: (() => void)[] = [];
  #nextId = 1;

  readonly #answer: (channel: Channel, frame: Frame) => boolean;

  /** `answer` returns whether it has handled a frame; all others are kept. */
  constructor(
    socket: Socket,
    number: number,
    rest: Buffer,
    answer: (channel: Channel, frame: Frame) => boolean = () => false,
  ) {
    this.socket = socket;
    this.number = number;
    this.#answer = answer;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('close', () => this.#end());
    socket.on('end', () => this.#end());
    socket.on('error', () => this.#end());
    if (rest.length > 0) this.#receive(rest);
  }

  newId(): number {
    return this.#nextId++;
  }

  send(id: number, type: string, payload: Payload = {}, flags?: number): void {
    this.socket.write(encodeFrame(id, type, payload, flags));
  }

  /** The first kept frame that matches, taken out; waits for it at most `timeoutMs`. */
  async take(matches: (frame: Frame) => boolean, what: string, timeoutMs = TIMEOUT_MS): Promise<Frame> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const index = this.frames.findIndex(matches);
      if (index >= 0) return this.frames.splice(index, 1)[0] as Frame;
      if (this.ended) throw new Error(`connection ended while waiting for ${what}`);
      await this.#change(deadline, what);
    }
  }

  takeType(type: string, id?: number, timeoutMs?: number): Promise<Frame> {
    return this.take(
      (frame) => frame.type === type && (id === undefined || frame.id === id),
      `${type} ${id ?? ''}`,
      timeoutMs,
    );
  }

  /** Sends a request with a fresh id and waits for the TERMINAL answer. */
  async call(type: string, payload: Payload = {}): Promise<Frame> {
    const id = this.newId();
    this.send(id, type, payload);
    return this.take((frame) => frame.id === id && (frame.flags & 1) === 1, `the answer to ${type}`);
  }

  async untilEnded(timeoutMs = TIMEOUT_MS): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!this.ended) await this.#change(deadline, 'the end of the connection');
  }

  async #change(deadline: number, what: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const seen = this.frames.slice(-5).map((frame) => frame.type);
    const timer = setTimeout(
      () => reject(new Error(`no ${what} in time; last frames: ${seen.join(', ')}`)),
      deadline - Date.now(),
    );
    this.#wake.push(resolve);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #end(): void {
    this.ended = true;
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  #receive(chunk: Buffer): void {
    this.bytesReceived += chunk.length;
    this.#buffered.push(chunk);
    this.#size += chunk.length;
    if (this.#size < 4) return;
    let data = Buffer.concat(this.#buffered);
    while (data.length >= 4 && data.length >= 4 + data.readUInt32BE(0)) {
      const length = data.readUInt32BE(0);
      const frame = decodeFrame(data.subarray(4, 4 + length));
      if (!this.#answer(this, frame)) this.frames.push(frame);
      data = data.subarray(4 + length);
    }
    this.#buffered = data.length > 0 ? [data] : [];
    this.#size = data.length;
    this.#notify();
  }
}

function decodeFrame(body: Buffer): Frame {
  const envelope = decode(body.subarray(5), { strict: true }) as { v: number; t: string; p: Uint8Array };
  if (envelope.v !== 7) throw new Error(`generation ${envelope.v}`);
  const payload = decode(envelope.p, { strict: true }) as Payload;
  return { id: body.readUInt32BE(0), flags: body[4] as number, type: envelope.t, payload };
}
