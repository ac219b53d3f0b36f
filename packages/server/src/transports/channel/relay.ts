import { FrameError } from '@svc/contract/frames';
import type { ByteTransport } from '@svc/contract/channel';
import type { RawData, WebSocket } from 'ws';
import { ClientFrames, type ClientPiece } from './client-frames.ts';
import { CLOSE, closeReason } from './close.ts';
import { describeExec, type ExecDescription } from './describe-exec.ts';
import { KeepAlive } from './keep-alive.ts';
import { toBytes } from './raw-data.ts';

/** Reading from a client pauses while more bytes than this are queued for the sandbox. */
const MAX_WAITING_BYTES = 1024 * 1024;
const JOINED_BYTES = 16 * 1024;
/** Interval of pings to a paused client: a failing write is the only sign that it is gone. */
const PROBE_MS = 1000;

/** Null: ended without a known reason. */
export type ChannelEnd = { readonly code: number; readonly message: string } | null;

const ENDED = { code: CLOSE.normal, message: 'the sandbox ended the channel' };
const BROKEN = { code: CLOSE.goingAway, message: 'the connection to the sandbox broke' };
export interface RelayOptions {
  readonly keepAliveMs: number;
  /** Records a requested process. A failure ends the channel, and the process with it. */
  readonly onExec: (exec: ExecDescription) => Promise<void>;
  /** The reason to give to the client when the sandbox has ended the channel. */
  readonly explainEnd: () => Promise<ChannelEnd>;
  /** Called periodically. @throws when the client has lost its permission */
  readonly recheck: () => Promise<void>;
}

/**
 * Forwards bytes between a client's WebSocket and a stream of a sandbox until either ends. Each stream is a separate
 * client to the sandbox, so ids need no translation, and answers of the sandbox reach only this client. Both
 * directions have back-pressure.
 */
export async function relay(client: WebSocket, sandbox: ByteTransport, options: RelayOptions): Promise<void> {
  const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()));
  // ws closes the connection itself, with a fitting code; the listener prevents an uncaught error.
  client.on('error', () => undefined);
  const keepAlive = new KeepAlive(client, options);
  const inward = new Inward(client, sandbox, options.onExec);
  try {
    client.on('message', (data, isBinary) => {
      // The protocol ignores text messages.
      if (isBinary) inward.take(data);
    });
    void closed.then(() => sandbox.close());
    const isWhole = await sendAll(client, sandbox).then(
      () => true,
      // The stream to the sandbox broke, or the client left during a write.
      () => false,
    );
    const known = client.readyState === client.OPEN ? await options.explainEnd() : null;
    const end = known ?? (isWhole ? ENDED : BROKEN);
    client.close(end.code, closeReason(end.message));
  } finally {
    sandbox.close();
    await closed;
    keepAlive.stop();
    inward.stop();
  }
}

/** Sends each chunk before it reads the next one, because the transport reuses the memory of a chunk. */
async function sendAll(client: WebSocket, sandbox: ByteTransport): Promise<void> {
  for await (const chunk of sandbox.readable) {
    await new Promise<void>((resolve, reject) => {
      client.send(chunk, { binary: true }, (error) => (error ? reject(error) : resolve()));
    });
  }
}

/** Forwards from the client to the sandbox. */
class Inward {
  readonly #client: WebSocket;
  readonly #sandbox: ByteTransport;
  readonly #onExec: RelayOptions['onExec'];
  readonly #frames = new ClientFrames();
  #waitingBytes = 0;
  #isOver = false;
  #probes: NodeJS.Timeout | undefined;

  constructor(client: WebSocket, sandbox: ByteTransport, onExec: RelayOptions['onExec']) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#onExec = onExec;
  }

  /** Forwards a message only if all of it is legal. */
  take(data: RawData): void {
    if (this.#isOver) return;
    try {
      const pieces = [...this.#frames.push(toBytes(data))];
      for (const { kind, bytes } of pieces) if (kind === 'session') this.#note(bytes);
      for (const bytes of joined(pieces)) this.#forward(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#end(CLOSE.protocolError, error.message);
    }
  }

  /** Records the process concurrently with its start. */
  #note(frame: Uint8Array): void {
    const exec = describeExec(frame);
    if (exec === undefined) return;
    this.#onExec(exec).catch(() => this.#end(CLOSE.failed, 'the audit log cannot be written'));
  }

  #forward(bytes: Uint8Array): void {
    this.#waitingBytes += bytes.length;
    this.#sandbox.write(bytes).then(
      () => {
        this.#waitingBytes -= bytes.length;
        if (this.#client.isPaused && this.#waitingBytes < MAX_WAITING_BYTES) this.#resume();
      },
      // The same failure ends the other direction, which tells the client.
      () => undefined,
    );
    if (this.#waitingBytes < MAX_WAITING_BYTES || this.#client.isPaused) return;
    this.#client.pause();
    this.#probes = setInterval(() => this.#client.ping(), PROBE_MS);
  }

  #resume(): void {
    clearInterval(this.#probes);
    this.#client.resume();
  }

  stop(): void {
    clearInterval(this.#probes);
  }

  #end(code: number, reason: string): void {
    this.#isOver = true;
    this.#resume();
    this.#client.close(code, closeReason(reason));
    this.#sandbox.close();
  }
}

/** Joins small pieces into one write, so that the sandbox wakes once. */
function joined(pieces: readonly ClientPiece[]): readonly Uint8Array[] {
  const all = pieces.map(({ bytes }) => bytes);
  const length = all.reduce((sum, bytes) => sum + bytes.length, 0);
  return all.length > 1 && length <= JOINED_BYTES ? [Buffer.concat(all, length)] : all;
}
