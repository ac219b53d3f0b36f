import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { ServerEvent } from '@svc/contract/rest';
import Fastify from 'fastify';
import { sendEvents } from './send-stream.ts';

test('a stream in which nothing happens is kept alive with comments, and no event is lost for it', async (t) => {
  const over = new AbortController();
  async function* events(): AsyncGenerator<ServerEvent> {
    yield { event: 'log', data: 1, id: 'a' };
    await once(over.signal, 'abort');
    yield { event: 'end', data: {} };
  }
  const server = Fastify();
  server.get('/', (_request, reply) =>
    sendEvents(reply, events(), { isAllowed: () => Promise.resolve(true), heartbeatMs: 10 }),
  );
  await server.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => server.close());
  const response = await fetch(`http://127.0.0.1:${(server.server.address() as AddressInfo).port}/`);
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.split(': heartbeat').length > 3) over.abort();
  }
  assert.match(
    text,
    /^: connected\n\nevent: log\nid: a\ndata: 1\n\n(: heartbeat\n\n){3,}event: end\ndata: \{\}\n\n$/,
  );
});

test('a stream ends when its reader may not read any more, however much it has to say', async (t) => {
  let isAllowed = true;
  async function* events(): AsyncGenerator<ServerEvent> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      yield { event: 'log', data: 1 };
    }
  }
  const server = Fastify();
  const options = { isAllowed: () => Promise.resolve(isAllowed), heartbeatMs: 10 };
  server.get('/', (_request, reply) => sendEvents(reply, events(), options));
  await server.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => server.close());
  const response = await fetch(`http://127.0.0.1:${(server.server.address() as AddressInfo).port}/`);
  let chunks = 0;
  for await (const chunk of response.body ?? []) {
    assert.ok(chunk.length > 0);
    chunks += 1;
    isAllowed = false;
  }
  assert.ok(chunks > 0);
});

test('events that are there at once are sent in one piece, and a failure behind them still ends the stream', async (t) => {
  async function* events(): AsyncGenerator<ServerEvent> {
    await Promise.resolve();
    yield { event: 'stdout', data: 1 };
    yield { event: 'result', data: 2 };
    throw new Error('it broke');
  }
  const server = Fastify();
  server.get('/', (_request, reply) =>
    sendEvents(reply, events(), { isAllowed: () => Promise.resolve(true) }),
  );
  await server.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => server.close());
  const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  // Each chunk is preceded by its length, and a complete answer ends with an empty chunk.
  assert.match(answer, /\r\n[0-9a-f]+\r\nevent: stdout\ndata: 1\n\nevent: result\ndata: 2\n\n\r\n$/);
});
