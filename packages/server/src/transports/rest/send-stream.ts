import { Readable } from 'node:stream';
import type { ByteSource, ServerEvent } from '@svc/contract/rest';
import type { FastifyReply } from 'fastify';

const HEARTBEAT_MS = 15_000;
/** What is told together is bounded, so that no reader is sent more at once than it takes. */
const MAX_TOGETHER_LENGTH = 64 * 1024;

/** The first chunk is awaited before the head is sent, so that a failure to read is still an answer with a status. */
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
  /** Asked from time to time; when it says no, the stream ends. */
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
 * Events that come in one turn of the event loop go together, because each piece wakes the client. With a comment now and then while nothing happens, so
 * that nobody between us and the client takes it for dead.
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
        // One that fails is met again by the next look at it.
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

/** Undefined when it takes longer; it may be waited for again. */
async function withinMs<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), milliseconds);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
