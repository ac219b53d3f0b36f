import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { ChannelClient } from '@svc/contract';
import { Client, Sandbox, SvcError } from '@svc/sdk';
import { dialBrowser } from '../../packages/sdk/src/platform/browser-dial.ts';
import { startChannelServer } from '../../packages/server/src/testing/channel-server.ts';
import { startTestServer } from '../../packages/server/src/testing/test-server.ts';
import { createApiKey } from '../../packages/server/src/store/api-keys-and-tokens.ts';
import { ensureOrganization } from '../../packages/server/src/store/organizations.ts';

/** Node's own WebSocket is the one of browsers: no headers, no pausing. */
async function dial(t: TestContext, key?: string) {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const url = `${address.url.replace('http', 'ws')}/v1/sandboxes/${address.sandboxId}/agent`;
  const refused = new SvcError('sandbox_not_running', 'asked the control plane');
  const transport = await dialBrowser({
    url,
    apiKey: key ?? address.key,
    signal: AbortSignal.timeout(60_000),
    describeRefusal: () => Promise.resolve(refused),
  });
  t.after(() => transport.close());
  return await ChannelClient.connect(transport);
}

test('a browser opens a channel with its key as a protocol and runs processes over it', async (t) => {
  const channel = await dial(t);
  const { code, stdout } = await channel.run({ cmd: 'cat' }, { input: Buffer.from('hello') });
  assert.deepEqual([code, Buffer.from(stdout).toString()], [0, 'hello']);
  const { stdout: much } = await channel.run({ cmd: 'head', args: ['-c', '3000000', '/dev/zero'] });
  assert.equal(much.length, 3_000_000);
});

test('a channel that is refused is explained by the control plane', async (t) => {
  await assert.rejects(dial(t, 'svc_wrong'), (error) => SvcError.is(error, 'sandbox_not_running'));
});

test('with a key, on a server that asks for one, a sandbox is made and used from end to end', async (t) => {
  const server = await startTestServer(t, { signingKey: new Uint8Array(32) });
  const organizationId = await ensureOrganization(server.database, 'acme');
  const { secret } = await createApiKey(server.database, organizationId, {
    name: 'k',
    createdBy: null,
    expiresAt: null,
  });
  const client = new Client({ apiUrl: server.url, apiKey: secret });
  await using sandbox = await Sandbox.create({ client, image: 'x' });
  assert.equal((await sandbox.exec('echo', ['hi'])).text(), 'hi\n');
  assert.equal(await client.slug(), 'acme');
});
