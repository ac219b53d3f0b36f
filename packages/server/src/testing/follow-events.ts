import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { TestServer } from './test-server.ts';

export interface FollowedEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Yields the events of a stream until it ends; leaving the loop closes the stream. */
export async function* followEvents(
  server: Pick<TestServer, 'url'>,
  path: string,
  headers: Record<string, string> = {},
): AsyncGenerator<FollowedEvent> {
  // Not fetch: it opens a spare connection when a stream is closed.
  const request = get(`${server.url}/v1${path}`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  assert.equal(response.headers['content-type'], 'text/event-stream');
  let text = '';
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      text += chunk.toString();
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) if (!block.startsWith(':')) yield parse(block);
    }
  } finally {
    request.destroy();
  }
}

function parse(block: string): FollowedEvent {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
  return {
    event: field('event') ?? '',
    id: field('id'),
    data: JSON.parse(field('data') ?? '{}') as FollowedEvent['data'],
  };
}
