import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { untilListening } from './node-listen.ts';

test('a server that could not accept a connection takes the next one', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await untilListening(server);
  assert.ok(server.emit('error', Object.assign(new Error('accept'), { code: 'EMFILE' })));
  assert.ok(server.listening);
});

test('a server that cannot listen says why', async (t) => {
  const first = createServer().listen(0, '127.0.0.1');
  t.after(() => first.close());
  await once(first, 'listening');
  const { port } = first.address() as { port: number };
  await assert.rejects(untilListening(createServer().listen(port, '127.0.0.1')), { code: 'EADDRINUSE' });
});
