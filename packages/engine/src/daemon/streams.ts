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
 * Runs long work and sends its progress line by line; the last line is the result or the error. An error before the first progress line
 * is sent with its HTTP status instead, so callers parse every error the same way.
 */
export async function sendProgress(
  call: Call,
  work: (onProgress: (progress: ImageProgress) => void) => Promise<unknown>,
): Promise<undefined> {
  const { response } = call;
  // Lines are batched until the next turn of the event loop: an immediate answer goes out in one piece.
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
    // Work that was cancelled because its caller left is not a failure.
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
