import type { Socket } from 'node:net';
import { abortable } from '@svc/contract/async';
import { PlatformError } from '@svc/contract/errors';
import {
  decodeMessage,
  encodeMessage,
  FrameSplitter,
  MAX_FRAME_BYTES,
  type Message,
  type Payload,
} from '@svc/contract/frames';
import {
  readHello,
  readOutput,
  readProcessState,
  readStatus,
  type GuestStatus,
  type Hello,
  type ProcessOutput,
  type ProcessState,
} from './guest-messages.ts';
import type { TokenBucket } from './token-buckets.ts';

interface ControlListener {
  hello(hello: Hello): void;
  status(status: GuestStatus): void;
  output(output: ProcessOutput): void;
  exited(state: ProcessState): void;
  wasOutOfMemory(): Promise<boolean>;
  wereForksRefused(): boolean;
  closed(): void;
}

/** A peer that does not read our messages is not svc-init, or hangs: the connection is closed. More than one frame, so that every request fits. */
const MAX_UNREAD_BYTES = 2 * MAX_FRAME_BYTES;

/** Reading, handling and answering a message costs as much as this many bytes of output. */
const MESSAGE_COST = 8 * 1024;

/**
 * The control connection of a sandbox: requests with answers, and notifications both ways. When a guest exceeds its share of our time, its
 * connection is not read for a while: svc-init then buffers the output of its processes until they block.
 */
export class ControlConnection {
  readonly #socket: Socket;
  readonly #bucket: TokenBucket;
  readonly #listener: ControlListener;
  readonly #splitter = new FrameSplitter();
  readonly #pending = new Map<number, (outcome: Message | Error) => void>();
  #nextId = 1;
  #isGreeted = false;
  #holding: NodeJS.Timeout | undefined;

  constructor(socket: Socket, bucket: TokenBucket, listener: ControlListener) {
    this.#socket = socket;
    this.#bucket = bucket;
    this.#listener = listener;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.once('close', () => {
      clearTimeout(this.#holding);
      bucket.release();
      for (const settle of this.#pending.values()) settle(cutOff());
      this.#pending.clear();
      listener.closed();
    });
    socket.resume();
  }

  /** Resolves to the message that ends the request; `core.error` and `*.failed` are answers too. */
  async request(type: string, payload: Payload, signal: AbortSignal): Promise<Message> {
    signal.throwIfAborted();
    const id = this.#nextId;
    this.#nextId = (this.#nextId % 0x7fff_ffff) + 1;
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    this.#pending.set(id, (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)));
    try {
      this.#send(id, type, payload);
      return await abortable(promise, signal);
    } finally {
      this.#pending.delete(id);
    }
  }

  notify(type: string, payload: Payload): void {
    this.#send(0, type, payload);
  }

  close(): void {
    this.#socket.destroy();
  }

  #send(id: number, type: string, payload: Payload): void {
    if (this.#socket.destroyed) return;
    this.#socket.write(encodeMessage(id, type, payload));
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#bucket.spend(chunk.length);
    try {
      for (const frame of this.#splitter.push(chunk)) {
        this.#bucket.spend(MESSAGE_COST);
        this.#handle(decodeMessage(frame));
      }
    } catch {
      // An invalid message: the sender is not our svc-init; the real one dials again.
      this.#socket.destroy();
    }
    this.#holdWhileOver();
  }

  /** Checks again after the wait: with more active guests each share is smaller. */
  #holdWhileOver(): void {
    clearTimeout(this.#holding);
    const waitMs = this.#bucket.waitMs();
    if (waitMs === 0) this.#socket.resume();
    else if (!this.#socket.destroyed) {
      this.#socket.pause();
      this.#holding = setTimeout(() => this.#holdWhileOver(), waitMs);
    }
  }

  #handle(message: Message): void {
    switch (message.type) {
      case 'svc.hello':
        return this.#greet(message.payload);
      case 'svc.status':
        return this.#listener.status(readStatus(message.payload));
      case 'svc.process.output': {
        const output = readOutput(message.payload);
        if (output !== undefined) this.#listener.output(output);
        return undefined;
      }
      case 'svc.process.exited':
        return this.#listener.exited(readProcessState(message.payload));
      case 'svc.killed':
        this.#answerKilled(message.id);
        return undefined;
      case 'svc.failed':
        return this.#send(message.id, 'svc.failed.answer', { pids: this.#listener.wereForksRefused() });
      default:
        this.#pending.get(message.id)?.(message);
        return undefined;
    }
  }

  /** Accepted once per connection, because each one makes us check what the log contains already. */
  #greet(payload: Payload): void {
    if (this.#isGreeted) throw new Error('greeted twice');
    this.#isGreeted = true;
    this.#listener.hello(readHello(payload));
  }

  #answerKilled(id: number): void {
    this.#listener.wasOutOfMemory().then(
      (oom) => {
        this.#send(id, 'svc.killed.answer', { oom });
      },
      // Without an answer svc-init reports a plain signal, since the cause is not known.
      () => {},
    );
  }
}

function cutOff(): PlatformError {
  return new PlatformError('unavailable', 'the sandbox closed its connection to the engine');
}
