import { Readable } from 'node:stream';
import type { ByteSource, ServerEvent } from '@svc/contract/rest';
import type { FastifyReply } from 'fastify';

const HEARTBEAT_MS = 15_000;
/** Limit of one batch, so that a reader is not sent more at once than it takes. */
const MAX_TOGETHER_LENGTH = 64 * 1024;

/** Awaits the first chunk before it sends the head, so that a read error still gets an error status. */
export async function sendBytes(reply: FastifyReply, content: ByteSource): Promise<FastifyReply> {
  const chunks = content[Symbol.asyncIterator]();
  const first = await chunks.next();
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      for (let next = first; next.done !== true; next = await chunks.next()) yield next.value;
    } finally {
      await chunks.return?.();
    }
  }
  return await reply
    .header('content-type', 'application/octet-stream')
    .send(Readable.from(all(), { objectMode: false }));
}

export interface StreamOptions {
  /** Called periodically; the stream ends when it returns false. */
  readonly isAllowed: () => Promise<boolean>;
  readonly heartbeatMs?: number;
}

export async function sendEvents(
  reply: FastifyReply,
  events: AsyncIterable<ServerEvent>,
  options: StreamOptions,
): Promise<FastifyReply> {
  return await reply
    .header('content-type', 'text/event-stream')
    .header('cache-control', 'no-store')
    .send(Readable.from(eventLines(events, options), { objectMode: false }));
}

/**
 * Serializes events. Batches those of one turn of the event loop, because each piece wakes the client. Sends a
 * comment as heartbeat while there are no events, so that proxies keep the connection open.
 */
async function* eventLines(
  events: AsyncIterable<ServerEvent>,
  { isAllowed, heartbeatMs = HEARTBEAT_MS }: StreamOptions,
): AsyncGenerator<string> {
  yield ': connected\n\n';
  const iterator = events[Symbol.asyncIterator]();
  let askAgainAt = performance.now() + heartbeatMs;
  try {
    for (let next = iterator.next(); ;) {
      const result = await withinMs(next, heartbeatMs);
      if (performance.now() >= askAgainAt) {
        if (!(await isAllowed())) return;
        askAgainAt = performance.now() + heartbeatMs;
      }
      if (result === undefined) {
        yield ': heartbeat\n\n';
        continue;
      }
      if (result.done === true) return;
      let lines = linesOf(result.value);
      next = iterator.next();
      const later = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
      while (lines.length < MAX_TOGETHER_LENGTH) {
        // A failure is thrown by the next iteration.
        const more = await Promise.race([next.catch(() => undefined), later]);
        if (more === undefined || more.done === true) break;
        lines += linesOf(more.value);
        next = iterator.next();
      }
      yield lines;
    }
  } finally {
    // Not awaited: a source that waits for its next event ends by the signal of the call.
    iterator.return?.()?.catch(() => undefined);
  }
}

function linesOf({ event, data, id }: ServerEvent): string {
  const resume = id === undefined ? '' : `id: ${id}\n`;
  return `event: ${event}\n${resume}data: ${JSON.stringify(data)}\n\n`;
}

/** Undefined after the timeout; the work can be awaited again. */
async function withinMs<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), milliseconds);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
