import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Divert } from './exchange.ts';

/** From here on a body is worth the change. */
const MIN_BULK_BYTES = 1024 * 1024;
const BATCH_BYTES = 128 * 1024;
/** Each holds two batches while its client does not read. */
const MAX_AT_A_TIME = 128;

let underWay = 0;

export interface Answered {
  readonly outgoing: ClientRequest;
  readonly answered: IncomingMessage;
  readonly response: ServerResponse;
}

/** Whether the body of this answer is long, of a length that was said, and the only thing that is left of its request. */
export function isBulk({ outgoing, answered: { statusCode, headers }, response }: Answered): boolean {
  const { 'content-length': length = '', 'transfer-encoding': encoding } = headers;
  return (
    /^\d{7,15}$/.test(length) &&
    Number(length) >= MIN_BULK_BYTES &&
    encoding === undefined &&
    (statusCode === 200 || statusCode === 206) &&
    outgoing.method !== 'HEAD' &&
    outgoing.writableFinished &&
    // The answers before it are out.
    response.socket !== null &&
    underWay < MAX_AT_A_TIME
  );
}

export interface BulkBody {
  /** What the parser had of it already. */
  readonly begun: readonly Buffer[];
  readonly length: number;
  readonly upstream: Duplex;
  readonly divert: Divert;
  readonly response: ServerResponse;
}

/**
 * Copies the rest of a body of known length in large chunks, through reused buffers. Resolves when all of it was written to the
 * response; rejects when the server ends early or sends more than it announced. The caller writes what follows the body.
 */
export async function carryBulk({ begun, length, upstream, divert, response }: BulkBody): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const batches = new Batches(response);
  let left = length;
  const take = (bytes: Uint8Array) => {
    left -= bytes.length;
    if (left < 0) reject(new Error('Longer than announced'));
    else batches.add(bytes);
    if (left <= 0) resolve();
    return left > 0 && !response.writableNeedDrain;
  };
  const goOn = () => void upstream.read(0);
  const onEnd = () => reject(new Error('Ended before its end'));
  underWay += 1;
  upstream.once('end', onEnd).once('close', onEnd);
  response.on('drain', goOn).once('close', onEnd);
  try {
    for (const bytes of begun) take(bytes);
    divert(take);
    if (left > 0 && !response.writableNeedDrain) goOn();
    await promise;
    batches.flush();
  } finally {
    underWay -= 1;
    batches.close();
    upstream.off('end', onEnd).off('close', onEnd);
    response.off('drain', goOn).off('close', onEnd);
  }
}

/** Gathers what comes at once, and writes it as one. */
class Batches {
  readonly #response: ServerResponse;
  /** Written out, to be filled again. */
  readonly #free: Buffer[] = [];
  #current: Buffer = Buffer.allocUnsafeSlow(BATCH_BYTES);
  #filled = 0;
  #flushing: NodeJS.Immediate | null = null;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  add(bytes: Uint8Array): void {
    if (this.#filled + bytes.length > BATCH_BYTES) this.flush();
    // What the parser had before may be longer than a batch; it is a buffer of its own.
    if (bytes.length > BATCH_BYTES) return void this.#response.write(bytes);
    this.#current.set(bytes, this.#filled);
    this.#filled += bytes.length;
    // Behind all that is to be read now.
    this.#flushing ??= setImmediate(() => this.flush());
  }

  flush(): void {
    this.close();
    if (this.#filled === 0) return;
    const batch = this.#current;
    this.#response.write(batch.subarray(0, this.#filled), () => this.#free.push(batch));
    this.#current = this.#free.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES);
    this.#filled = 0;
  }

  close(): void {
    if (this.#flushing !== null) clearImmediate(this.#flushing);
    this.#flushing = null;
  }
}
