import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import type { TestServer } from './test-server.ts';

export interface HeardEvent {
  readonly event: string;
  readonly data: unknown;
}

/** The events of a stream until it ends; leaving the loop closes the stream. */
export async function* followEvents(
  server: Pick<TestServer, 'url'>,
  method: string,
  path: string,
  options: { readonly key?: string; readonly body?: unknown } = {},
): AsyncGenerator<HeardEvent> {
  const headers = {
    'content-type': 'application/json',
    ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }),
  };
  // Not fetch: it opens a spare connection when a stream is closed.
  const outgoing = request(`${server.url}/v1${path}`, { method, headers, agent: false });
  outgoing.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  assert.equal(response.headers['content-type'], 'text/event-stream');
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) {
    text += chunk.toString();
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, event] = /^event: (.*)$/m.exec(block) ?? [];
      const [, data = ''] = /^data: (.*)$/m.exec(block) ?? [];
      if (event !== undefined) yield { event, data: JSON.parse(data) as unknown };
    }
  }
}
