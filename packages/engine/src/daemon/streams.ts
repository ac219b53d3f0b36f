import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { ImageProgress } from '../images/images.ts';
import type { Call } from './http-server.ts';

/** Sends each item as a line of JSON, as fast as the caller reads. */
export async function sendLines(response: ServerResponse, items: AsyncIterable<unknown>): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.flushHeaders();
  for await (const item of items) await writeLine(response, item);
  response.end();
}

/**
 * Does long work while its progress goes out line by line; the last line is the result or the error. Only an error
 * that comes before any progress was sent keeps its HTTP status, so callers need one way to read it.
 */
export async function sendProgress(
  call: Call,
  work: (onProgress: (progress: ImageProgress) => void) => Promise<unknown>,
): Promise<undefined> {
  const { response } = call;
  // Lines wait for the end of this turn: an answer that is there at once goes out in one piece.
  let waiting = '';
  const take = () => {
    const text = waiting;
    waiting = '';
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    return text;
  };
  const onProgress = (progress: ImageProgress) => {
    if (waiting === '') setImmediate(() => waiting !== '' && response.write(take()));
    waiting += `${JSON.stringify({ progress })}\n`;
  };
  try {
    const result = await work(onProgress);
    response.end(`${take()}${JSON.stringify({ result })}\n`);
  } catch (error) {
    // What was broken off for a caller who has gone is no failure.
    if (call.signal.aborted) return undefined;
    if (!response.headersSent) {
      waiting = '';
      throw error;
    }
    response.end(`${take()}${JSON.stringify(call.describe(error).envelope)}\n`);
  }
  return undefined;
}

export async function sendBytes(response: ServerResponse, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  for await (const chunk of chunks) {
    if (!response.write(chunk)) await drained(response);
  }
  response.end();
}

async function writeLine(response: ServerResponse, item: unknown): Promise<void> {
  if (!response.write(`${JSON.stringify(item)}\n`)) await drained(response);
}

async function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) throw new Error('the caller went away');
  await Promise.race([once(response, 'drain'), once(response, 'close')]);
}
