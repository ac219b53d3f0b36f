import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract';
import { streamBody } from './read-body.ts';

/** A request whose body the test sends in pieces, as the server received it. */
async function begin(t: TestContext, maxPauseMs: number) {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ port, host: '127.0.0.1', method: 'PUT' });
  outgoing.on('error', () => undefined);
  outgoing.write('first ');
  const [incoming] = (await once(server, 'request')) as [IncomingMessage];
  const body = streamBody(incoming, maxPauseMs);
  const received: Promise<string> = Array.fromAsync(body.content).then((chunks) =>
    Buffer.concat(chunks).toString(),
  );
  // Awaited by the tests, some of them after a pause.
  received.catch(() => undefined);
  return { outgoing, received, body };
}

const endedTooEarly = (error: unknown) =>
  PlatformError.is(error, 'invalid_request') && /ended too early/.test(error.message);

test('a body arrives whole, and its digest is that of all of it', async (t) => {
  const { outgoing, received, body } = await begin(t, 60_000);
  outgoing.end('second');
  assert.equal(await received, 'first second');
  assert.equal(await body.digest(), '92088ec140fc553e4b1ede202edccb65a807bbf8a38d765a3ad38013c0f13688');
});

test('a body that breaks off is an error, never a short body', async (t) => {
  const { outgoing, received } = await begin(t, 60_000);
  outgoing.destroy();
  await assert.rejects(received, endedTooEarly);
});

test('a body that pauses for too long is an error', async (t) => {
  const { outgoing, received } = await begin(t, 100);
  outgoing.write('second');
  await assert.rejects(received, endedTooEarly);
});
