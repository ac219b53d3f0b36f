import { FrameError } from '@svc/contract/frames';
import type { ByteTransport } from '@svc/contract/channel';
import type { RawData, WebSocket } from 'ws';
import { ClientFrames, type ClientPiece } from './client-frames.ts';
import { CLOSE, closeReason } from './close.ts';
import { describeExec, type ExecDescription } from './describe-exec.ts';
import { KeepAlive } from './keep-alive.ts';
import { toBytes } from './raw-data.ts';

/** A client is read no further while this much of what it sent waits for the sandbox. */
const MAX_WAITING_BYTES = 1024 * 1024;
const JOINED_BYTES = 16 * 1024;
/** How often a client that is not being read is written to: that fails when it is gone, and nothing else tells. */
const PROBE_MS = 1000;

/** Null: nothing is known but that it is over. */
export type ChannelEnd = { readonly code: number; readonly message: string } | null;

const ENDED = { code: CLOSE.normal, message: 'the sandbox ended the channel' };
const BROKEN = { code: CLOSE.goingAway, message: 'the connection to the sandbox broke' };
export interface RelayOptions {
  readonly keepAliveMs: number;
  /** Notes that a process was asked for. When that fails, the channel ends and the process with it. */
  readonly onExec: (exec: ExecDescription) => Promise<void>;
  /** What the client is told when the sandbox has ended the channel. */
  readonly explainEnd: () => Promise<ChannelEnd>;
  /** Asked from time to time. @throws when the client may not go on */
  readonly recheck: () => Promise<void>;
}

/**
 * Joins a client's WebSocket to one stream of a sandbox until either ends. Both directions are byte pipes: a stream is a
 * client of its own to the sandbox, so ids need no translation and nothing that a sandbox answers can reach anybody else.
 * Neither side is read faster than the other takes it.
 */
export async function relay(client: WebSocket, sandbox: ByteTransport, options: RelayOptions): Promise<void> {
  const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()));
  // ws closes the connection by itself, with the code that fits; this only keeps the error from being thrown.
  client.on('error', () => undefined);
  const keepAlive = new KeepAlive(client, options);
  const inward = new Inward(client, sandbox, options.onExec);
  try {
    client.on('message', (data, isBinary) => {
      // Text carries nothing in this protocol.
      if (isBinary) inward.take(data);
    });
    void closed.then(() => sandbox.close());
    const isWhole = await sendAll(client, sandbox).then(
      () => true,
      // The stream to the sandbox broke, or the client left while it was being sent to.
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

/** A chunk is lent by the transport until the next one is asked for, so each is sent before that. */
async function sendAll(client: WebSocket, sandbox: ByteTransport): Promise<void> {
  for await (const chunk of sandbox.readable) {
    await new Promise<void>((resolve, reject) => {
      client.send(chunk, { binary: true }, (error) => (error ? reject(error) : resolve()));
    });
  }
}

/** From the client to the sandbox. */
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

  /** Nothing of a message is passed on that has anything illegal in it. */
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

  /** The process begins while its event is being written. */
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
      // The other direction ends with the same stream and tells the client.
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

/** What is small goes in one write, so that the sandbox wakes once for it. */
function joined(pieces: readonly ClientPiece[]): readonly Uint8Array[] {
  const all = pieces.map(({ bytes }) => bytes);
  const length = all.reduce((sum, bytes) => sum + bytes.length, 0);
  return all.length > 1 && length <= JOINED_BYTES ? [Buffer.concat(all, length)] : all;
}
