import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { encodeMessage } from '@svc/contract/frames';
import { waitUntil } from '@svc/contract/testing';
import { createToken } from '../../store/api-keys-and-tokens.ts';
import { ensureOrganization, putMember } from '../../store/organizations.ts';
import { ensureUser } from '../../store/users.ts';
import { startChannelServer } from '../../testing/channel-server.ts';
import { closeOf, openChannel, openWebSocket, refusalOf } from '../../testing/channel.ts';

const MISSING_ID = '00000000-0000-4000-8000-000000000000';

test('a client runs a process over the WebSocket', async (t) => {
  const server = await startChannelServer(t);
  const { channel } = await openChannel(t, await server.addSandbox());
  assert.equal(channel.agent.generation, 7);
  const input = Buffer.from('in');
  const { code, stdout } = await channel.run({ cmd: 'sh', args: ['-c', 'cat; exit 7'] }, { input });
  assert.deepEqual([code, Buffer.from(stdout).toString()], [7, 'in']);
});

test('the greeting is sent without a request, and text from the client is ignored', async (t) => {
  const server = await startChannelServer(t);
  const { channel, socket } = await openChannel(t, await server.addSandbox());
  assert.ok(channel.agent.readyTimeNs > 0);
  socket.send('a text');
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
});

test('small frames of one message reach the sandbox together, or none of them when one is illegal', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const arrived: Uint8Array[] = [];
  server.orchestrator.createAgent = () => {
    const sandbox = new PassThrough();
    sandbox.on('data', (chunk: Buffer) => arrived.push(chunk));
    return sandbox;
  };
  const socket = await openWebSocket(t, address);
  const request = encodeMessage(1, 'core.exec.request', { cmd: 'true' });
  const frames = Buffer.concat([request, encodeMessage(1, 'core.exec.stdin', { data: new Uint8Array() })]);
  socket.send(frames);
  await waitUntil(() => arrived.length > 0);
  assert.deepEqual(arrived, [frames]);
  const isOver = closeOf(socket);
  socket.send(Buffer.concat([request, Buffer.alloc(9)]));
  assert.equal((await isOver).code, 1002);
  assert.equal(arrived.length, 1);
});

test('without a credential, or with a wrong one, nothing opens', async (t) => {
  const server = await startChannelServer(t);
  const { url, sandboxId } = await server.addSandbox();
  for (const key of [undefined, 'svc_wrong', 'svc_pat_wrong', 'a.b.c']) {
    const { status, body, headers } = await refusalOf({
      url,
      sandboxId,
      ...(key === undefined ? {} : { key }),
    });
    assert.deepEqual(
      [status, body.error.code, headers['www-authenticate']],
      [401, 'invalid_api_key', 'Bearer'],
    );
    assert.ok(headers['x-request-id']);
  }
});

test("another organization's sandbox is as unknown as one that never was", async (t) => {
  const server = await startChannelServer(t);
  const { sandboxId } = await server.addSandbox();
  const { url, key } = await server.addSandbox({ organization: 'other' });
  const foreign = await refusalOf({ url, key, sandboxId });
  const missing = await refusalOf({ url, key, sandboxId: MISSING_ID });
  assert.deepEqual([foreign.status, foreign.body.error.code], [404, 'sandbox_not_found']);
  assert.deepEqual(
    JSON.parse(JSON.stringify(foreign.body).replaceAll(sandboxId, 'ID')),
    JSON.parse(JSON.stringify(missing.body).replaceAll(MISSING_ID, 'ID')),
  );
});

test('members open the channels of their organization below its path, others do not', async (t) => {
  const server = await startChannelServer(t);
  const { url, sandboxId, key } = await server.addSandbox();
  const member = await ensureUser(server.database, 'm@example.com');
  const outsider = await ensureUser(server.database, 's@example.com');
  await putMember(server.database, await ensureOrganization(server.database, 'acme'), member.id, 'member');
  const tokenOf = async (userId: string) =>
    (await createToken(server.database, userId, { name: 't', createdBy: null, expiresAt: null })).secret;
  const address = { url, sandboxId, prefix: '/orgs/acme' };
  const { channel } = await openChannel(t, { ...address, key: await tokenOf(member.id) });
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
  const refused = await refusalOf({ ...address, key: await tokenOf(outsider.id) });
  assert.deepEqual([refused.status, refused.body.error.code], [403, 'forbidden']);
  assert.equal((await refusalOf({ ...address, key })).status, 401);
  assert.equal((await refusalOf({ url, sandboxId, key: await tokenOf(member.id) })).status, 401);
});

test('a page sends its credential as a subprotocol, and the answer does not repeat it', async (t) => {
  const server = await startChannelServer(t);
  const { url, sandboxId, key } = await server.addSandbox();
  const protocols = ['svc.channel', `svc.bearer.${key}`];
  const socket = await openWebSocket(t, { url, sandboxId, protocols });
  assert.equal(socket.protocol, 'svc.channel');
});

test('a sandbox that does not run, or was never made, is 409', async (t) => {
  const server = await startChannelServer(t);
  const stopped = await server.addSandbox({ isStopped: true });
  const unmade = await server.addSandbox();
  await server.orchestrator.remove(unmade.sandboxId);
  for (const address of [stopped, unmade]) {
    const { status, body } = await refusalOf(address);
    assert.deepEqual([status, body.error.code], [409, 'sandbox_not_running']);
  }
});

test('an unavailable engine is 502', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  server.orchestrator.goAway();
  const { status, body } = await refusalOf(address);
  assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable']);
});

test('pages and names that are not ours are refused', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  for (const headers of [{ origin: 'http://evil.example' }, { host: 'evil.example' }]) {
    const { status, body } = await refusalOf({ ...address, headers });
    assert.deepEqual([status, body.error.code], [403, 'forbidden']);
  }
});

test('bad addresses and plain requests get an answer that says so', async (t) => {
  const server = await startChannelServer(t);
  const { url, sandboxId, key } = await server.addSandbox();
  const fieldOf = async (id: string) => {
    const { status, body } = await refusalOf({ url, key, sandboxId: id });
    return [status, body.error.code, body.error.details?.['field']];
  };
  assert.deepEqual(await fieldOf('no-uuid'), [400, 'invalid_request', 'sandbox_id']);
  assert.deepEqual(await fieldOf(`${sandboxId}/agent?x=1&y=`), [400, 'invalid_request', 'x']);
  const ask = (method: string, headers = {}) =>
    fetch(`${url}/v1/sandboxes/${sandboxId}/agent`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...headers },
    });
  assert.equal((await ask('GET')).status, 400);
  assert.equal((await ask('POST')).status, 405);
  assert.equal((await refusalOf({ url, key, sandboxId: `${sandboxId}/else` })).status, 404);
});

test('an offer of another protocol is ignored, and what follows on the connection is still answered', async (t) => {
  const server = await startChannelServer(t);
  const { port } = new URL(server.url);
  const socket = connect(Number(port), '127.0.0.1');
  t.after(() => socket.destroy());
  const head = `GET /v1/sandboxes/${MISSING_ID}/agent HTTP/1.1\r\nhost: localhost\r\n`;
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.write(`${head}connection: upgrade\r\nupgrade: h2c\r\n\r\n`);
  await waitUntil(() => text.includes('}}'));
  socket.write(`${head}connection: close\r\n\r\n`);
  await once(socket, 'end');
  assert.equal(text.match(/HTTP\/1\.1 401/g)?.length, 2, text);
});

test('no more channels open than the limits allow, and a closed one makes room', async (t) => {
  const server = await startChannelServer(t, { limits: { perSandbox: 2, perOrganization: 3 } });
  const [one, two, foreign] = [
    await server.addSandbox(),
    await server.addSandbox(),
    await server.addSandbox({ organization: 'other' }),
  ];
  const first = await openWebSocket(t, one);
  await openWebSocket(t, one);
  const full = await refusalOf(one);
  assert.deepEqual(
    [full.status, full.body.error.code, full.body.error.details?.['maximum']],
    [429, 'rate_limited', 2],
  );
  await openWebSocket(t, two);
  assert.equal((await refusalOf(two)).body.error.details?.['maximum'], 3);
  await openWebSocket(t, foreign);
  first.terminate();
  await waitUntil(async () => {
    const attempt = await refusalOf(two).catch(() => 'opened');
    return attempt === 'opened';
  }, 'a channel opens again');
});

test('a key that is revoked ends its channels', async (t) => {
  const server = await startChannelServer(t, { keepAliveMs: 500 });
  const socket = await openWebSocket(t, await server.addSandbox());
  const closed = closeOf(socket);
  await server.database.updateTable('api_keys').set({ revoked_at: new Date().toISOString() }).execute();
  assert.equal((await closed).code, 1008);
});

test('a client that answers no ping is cut off, one that does stays', async (t) => {
  const server = await startChannelServer(t, { keepAliveMs: 500 });
  const address = await server.addSandbox();
  // The test decides when the server checks: a slow machine must not keep a client from answering in time.
  t.mock.timers.enable({ apis: ['setInterval'] });
  const alive = await openWebSocket(t, address);
  const silent = await openWebSocket(t, { ...address, isSilent: true });
  const closed = closeOf(silent);
  const pinged = Promise.all([once(alive, 'ping'), once(silent, 'ping')]);
  t.mock.timers.tick(500);
  await pinged;
  // When this pong arrives, the earlier answer has arrived too.
  const heard = once(alive, 'pong');
  alive.ping();
  await heard;
  t.mock.timers.tick(500);
  assert.equal((await closed).code, 1006);
  assert.equal(alive.readyState, alive.OPEN);
});

test('a server that shuts down says so to its clients', async (t) => {
  const server = await startChannelServer(t);
  const closed = closeOf(await openWebSocket(t, await server.addSandbox()));
  await server.close();
  assert.equal((await closed).code, 1001);
});

test('a sandbox that stops ends its channels', async (t) => {
  const server = await startChannelServer(t);
  const address = await server.addSandbox();
  const closed = closeOf(await openWebSocket(t, address));
  await server.orchestrator.stop(address.sandboxId);
  assert.ok([1000, 1001].includes((await closed).code));
});
