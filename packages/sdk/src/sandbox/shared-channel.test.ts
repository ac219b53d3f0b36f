import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Client } from '../client/client.ts';
import { SvcError } from '../svc-error.ts';
import { SharedChannel } from './shared-channel.ts';

test('a connection that is not answered is given as long as any call of its client, and no other time', async (t) => {
  const silent = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  const client = new Client({ apiUrl: `http://127.0.0.1:${port}`, apiKey: '', timeoutMs: 321 });
  const given = (error: unknown) => SvcError.is(error, 'timeout') && /\b321 ms\b/.test(error.message);
  await assert.rejects(
    new SharedChannel(client, 'one').use({}, async () => await Promise.resolve()),
    given,
  );
  await assert.rejects(new SharedChannel(client, 'one').openOwn({}), given);
});
