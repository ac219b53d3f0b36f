import type { Message, Payload } from '../frames/frame.ts';
import { abortable, onAbort } from '../async/abort.ts';
import { detach } from './byte-queue.ts';
import { ChannelError, FileFailed } from './channel-error.ts';
import type { Connection, Session } from './connection.ts';
import { eachChunk } from './each-chunk.ts';
import { own, readBytes, readMessage, readOptionalMessage } from './payload-fields.ts';
import { refusal } from './single-answer.ts';

/** Most bytes of content in one frame to the sandbox. */
const WRITE_CHUNK_BYTES = 2 * 1024 * 1024;
/** An agent that sends smaller pieces on average is refused: every piece costs more memory than its bytes. */
const MIN_READ_PIECE_BYTES = 256;
const SPARE_READ_PIECES = 64;

/** One file request: its name, its fields, and what the answer carries. */
export interface FileRequest {
  readonly operation: string;
  readonly fields: Payload;
}

/** Sends a request that has no content; resolves with the `data` of the answer. */
export async function requestFile(
  connection: Connection,
  request: FileRequest,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const session = await open(connection, request, 0, signal);
  return await session.finish(signal);
}

/** Reads at most `lengthBytes`; fewer only at the end of the file. */
export async function readContent(
  connection: Connection,
  request: FileRequest,
  lengthBytes: number,
  signal: AbortSignal | undefined,
): Promise<readonly Uint8Array[]> {
  const session = await open(connection, request, lengthBytes, signal);
  await session.finish(signal);
  return session.chunks;
}

/** Sends content until it ends, or until the sandbox answers early, which it does to report an error. */
export async function writeContent(
  connection: Connection,
  request: FileRequest,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const session = await open(connection, request, 0, signal);
  const stop = new AbortController();
  const unlisten = onAbort(signal, (reason) => stop.abort(reason));
  session.answer.then(
    () => stop.abort(EARLY_ANSWER),
    () => stop.abort(EARLY_ANSWER),
  );
  try {
    await eachChunk(content, stop.signal, async (chunk) => {
      for (let start = 0; start < chunk.length; start += WRITE_CHUNK_BYTES) {
        const data = chunk.subarray(start, start + WRITE_CHUNK_BYTES);
        await connection.send(session.id, 'core.fs.data', { data });
      }
    });
  } catch (error) {
    if (error !== EARLY_ANSWER) {
      connection.abandon(session.id);
      throw error;
    }
  } finally {
    unlisten();
    // The agent closes the file at the end of the content, also when it has answered before.
    connection.post(session.id, 'core.fs.data', { data: new Uint8Array(0) });
  }
  await session.finish(signal);
}

const EARLY_ANSWER = new Error('the sandbox answered before the content ended');

async function open(
  connection: Connection,
  request: FileRequest,
  lengthBytes: number,
  signal: AbortSignal | undefined,
): Promise<FileSession> {
  signal?.throwIfAborted();
  const session = new FileSession(connection, request.operation, lengthBytes);
  const payload = { op: { [request.operation]: request.fields } };
  await abortable(connection.send(session.id, 'core.fs.request', payload), signal);
  return session;
}

class FileSession implements Session {
  readonly id: number;
  readonly chunks: Uint8Array[] = [];
  readonly #connection: Connection;
  readonly #operation: string;
  readonly #answer = Promise.withResolvers<unknown>();
  readonly #maxPieces: number;
  #roomBytes: number;

  constructor(connection: Connection, operation: string, lengthBytes: number) {
    this.#connection = connection;
    this.#operation = operation;
    this.#maxPieces = lengthBytes / MIN_READ_PIECE_BYTES + SPARE_READ_PIECES;
    this.#roomBytes = lengthBytes;
    // The connection may end while content is still being sent.
    this.#answer.promise.catch(() => undefined);
    this.id = connection.start(this);
  }

  get answer(): Promise<unknown> {
    return this.#answer.promise;
  }

  async finish(signal: AbortSignal | undefined): Promise<unknown> {
    try {
      return await abortable(this.#answer.promise, signal);
    } finally {
      this.#connection.abandon(this.id);
    }
  }

  receive(message: Message): undefined {
    if (message.type === 'core.fs.data') this.#keep(readBytes(message.payload, 'data'));
    else if (message.type === 'core.fs.response') this.#settle(message.payload);
    else if (message.type === 'core.error') this.#answer.reject(refusal(message));
    return undefined;
  }

  lost(error: ChannelError): void {
    this.#answer.reject(error);
  }

  #keep(data: Uint8Array): void {
    this.#roomBytes -= data.length;
    // The requested length bounds what is held.
    if (this.#roomBytes < 0 || this.chunks.length >= this.#maxPieces) {
      throw new ChannelError('protocol', 'The sandbox sent more content than was asked for');
    }
    if (data.length > 0) this.chunks.push(detach(data));
  }

  #settle(payload: Payload): void {
    if (own(payload, 'ok') === true) {
      this.#answer.resolve(own(payload, 'data') ?? null);
      return;
    }
    const text = readMessage(payload, 'error') || `${this.#operation} failed`;
    this.#answer.reject(new FileFailed(text, readOptionalMessage(payload, 'errno_name')));
  }
}
