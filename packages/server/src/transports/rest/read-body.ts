import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PlatformError } from '@svc/contract';
import { parseRequestJson } from '@svc/contract/bounded-json';

export interface BodyLimits {
  readonly maxBytes: number;
  /** Larger bodies take one of the places for large bodies while they are in memory. */
  readonly usualBytes?: number;
  /** @throws PlatformError when no place is free */
  readonly reserve?: () => Disposable;
}

const NO_RESERVATION: Disposable = { [Symbol.dispose]: () => undefined };

/**
 * Reads a JSON body; an absent one becomes an empty object.
 * @throws PlatformError `payload_too_large` or `invalid_request`
 */
export async function readJsonBody(
  request: IncomingMessage,
  { maxBytes, usualBytes = maxBytes, reserve = () => NO_RESERVATION }: BodyLimits,
): Promise<{ readonly value: unknown }> {
  const promised = Number(request.headers['content-length'] ?? 0);
  if (promised > maxBytes) throw tooLarge(maxBytes);
  using reservation = new DisposableStack();
  let isLarge = false;
  const chunks: Buffer[] = [];
  let length = 0;
  // The request must not be destroyed on a refusal, because the answering code reads it to its end.
  const received = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of received) {
    length += chunk.length;
    if (length > maxBytes) throw tooLarge(maxBytes);
    if (!isLarge && Math.max(length, promised) > usualBytes) {
      isLarge = true;
      reservation.use(reserve());
    }
    chunks.push(chunk);
  }
  if (length === 0) return { value: {} };
  requireJson(request.headers['content-type']);
  try {
    return { value: parseRequestJson(Buffer.concat(chunks)) };
  } catch (error) {
    if (PlatformError.is(error)) throw error;
    const reason = 'is not JSON in UTF-8';
    throw new PlatformError('invalid_request', `The body ${reason}`, {
      details: { field: 'body', reason },
      cause: error,
    });
  }
}

/**
 * Streams a body, with its SHA-256; `digest` reads the rest of the body first. A body that breaks off, or pauses for
 * longer than `maxPauseMs` during a read, is an error, never a truncated body.
 */
export function streamBody(
  request: IncomingMessage,
  maxPauseMs: number,
): {
  readonly content: AsyncIterable<Uint8Array>;
  readonly digest: () => Promise<string>;
} {
  const hash = createHash('sha256');
  const next = readChunks(request, maxPauseMs);
  async function* content(): AsyncGenerator<Uint8Array> {
    for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
      hash.update(chunk);
      yield chunk;
    }
  }
  return {
    content: content(),
    digest: async () => {
      for await (const chunk of content()) void chunk;
      return hash.copy().digest('hex');
    },
  };
}

/** Returns a function that reads the next chunk; undefined at the end. */
function readChunks(request: IncomingMessage, maxPauseMs: number): () => Promise<Buffer | undefined> {
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let isWaiting = false;
  const timer = setTimeout(() => {
    if (isWaiting) request.destroy(new Error(`nothing came for ${maxPauseMs} ms`));
  }, maxPauseMs);
  timer.unref();
  return async () => {
    timer.refresh();
    isWaiting = true;
    try {
      const { value, done } = await chunks.next();
      if (done !== true) return value;
      if (!request.complete) throw new Error('the connection was closed');
    } catch (error) {
      throw new PlatformError('invalid_request', 'the body ended too early; send it again', {
        details: { field: 'body', reason: 'ended too early' },
        cause: error,
      });
    } finally {
      isWaiting = false;
    }
    clearTimeout(timer);
    return undefined;
  };
}

/** A body without a content type is accepted as JSON. */
function requireJson(contentType: string | undefined): void {
  if (contentType === undefined || /^application\/([\w.-]+\+)?json\b/i.test(contentType)) return;
  const reason = `must be application/json, not ${contentType}`;
  throw new PlatformError('invalid_request', `The Content-Type ${reason}`, {
    details: { field: 'Content-Type', reason },
  });
}

export function tooLarge(maxBytes: number): PlatformError {
  return new PlatformError('payload_too_large', `The body is larger than ${maxBytes} bytes`, {
    details: { max_bytes: maxBytes },
  });
}
