import assert from 'node:assert/strict';
import dns from 'node:dns';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { WebSocket, WebSocketServer } from 'ws';
import { signSession } from '../../access/sessions.ts';
import { startTestServer } from '../../testing/test-server.ts';
import { ask, DOMAIN, show } from '../../testing/shown-port.ts';
test('a port is shown to a caller with its token, which the service never gets to see', async (t) => {
  const { server, host, port, preview } = await show(t, (incoming, response) => {
    response.end(JSON.stringify({ url: incoming.url, headers: incoming.headers }));
  });
  assert.equal(preview.url, `http://${port}-my-app.${DOMAIN}:${new URL(server.url).port}/`);
  const answers = await Promise.all([
    ask(server, '/a?b=1', { host, headers: { 'x-svc-preview-token': preview.token } }),
    ask(server, `/a?svc_preview_token=${preview.token}&b=1`, { host }),
    ask(server, '/a?b=1', { host, headers: { cookie: `x=1; svc_preview_token=${preview.token}; y=2` } }),
  ]);
  for (const { status, text } of answers) {
    assert.equal(status, 200, text);
    assert.ok(!text.includes(preview.token), text);
    const seen = JSON.parse(text) as { url: string; headers: Record<string, string> };
    assert.equal(seen.url, '/a?b=1');
    assert.equal(seen.headers['host'], host);
    assert.equal(seen.headers['x-forwarded-host'], host);
    assert.equal(seen.headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(seen.headers['x-forwarded-proto'], 'http');
    assert.equal(seen.headers['x-forwarded-port'], '80');
  }
  assert.match(answers[2]?.text ?? '', /x=1; y=2/);
});

test('a link with the token sets a cookie of this host and leads to the address without it', async (t) => {
  const { server, host, preview } = await show(t, (_incoming, response) => response.end('page'));
  const link = await ask(server, `//elsewhere/x?svc_preview_token=${preview.token}&q=1`, {
    host,
    headers: { accept: 'text/html' },
  });
  assert.equal(link.status, 302);
  assert.equal(link.headers.location, '/elsewhere/x?q=1');
  assert.deepEqual(link.headers['set-cookie'], [
    `svc_preview_token=${preview.token}; Path=/; HttpOnly; SameSite=Lax`,
  ]);
  const page = await ask(server, '/x', { host, headers: { cookie: `svc_preview_token=${preview.token}` } });
  assert.deepEqual([page.status, page.text], [200, 'page']);
});

test('without a token a caller does not learn what exists: a page for people, JSON for programs', async (t) => {
  const { server, host, port, preview } = await show(t, (_incoming, response) => response.end('secret'));
  const page = await ask(server, '/', { host, headers: { accept: 'text/html' } });
  assert.equal(page.status, 401);
  assert.match(page.text, /<h1>This preview needs a token/);
  const json = await ask(server, '/', { host });
  assert.equal((JSON.parse(json.text) as { error: { code: string } }).error.code, 'invalid_api_key');
  const elsewhere = [
    await ask(server, '/', { host: `${port}-no-such.${DOMAIN}` }),
    await ask(server, '/', {
      host: `${port + 1}-my-app.${DOMAIN}`,
      headers: { 'x-svc-preview-token': preview.token },
    }),
    await ask(server, '/', {
      host: `1-no-such.${DOMAIN}`,
      headers: { 'x-svc-preview-token': preview.token },
    }),
    await ask(server, '/', { host, headers: { 'x-svc-preview-token': `${preview.token}0` } }),
  ];
  for (const { status, text } of elsewhere) assert.deepEqual([status, text], [401, json.text]);
});

test('a token that was revoked or has expired opens nothing, and is in no list', async (t) => {
  const { server, host, port, preview, sandboxId } = await show(t, (_incoming, response) => response.end());
  const short = await server.rest('POST', `/sandboxes/${sandboxId}/previews`, {
    body: { port, expires_in_secs: 60 },
  });
  const withToken = (token: string) => ask(server, '/', { host, headers: { 'x-svc-preview-token': token } });
  assert.equal((await withToken(short.body.token)).status, 200);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 });
  assert.equal((await withToken(short.body.token)).status, 401);
  const list = await server.rest('GET', `/sandboxes/${sandboxId}/previews`);
  assert.deepEqual(
    list.body.map(({ id }: { id: string }) => id),
    [preview.id],
  );
  assert.ok(!JSON.stringify(list.body).includes(preview.token));
  const path = `/sandboxes/${sandboxId}/previews/${preview.id}`;
  assert.equal((await server.rest('DELETE', path)).status, 200);
  assert.equal((await server.rest('DELETE', path)).status, 404);
  assert.equal((await withToken(preview.token)).status, 401);
});

test('bodies are streamed in both directions while they come', async (t) => {
  const { server, host, preview } = await show(t, (incoming, response) => {
    incoming.on('data', (chunk: Buffer) => response.write(`got ${chunk.toString()};`));
    incoming.on('end', () => response.end('end'));
  });
  const asked = request(`${server.url}/`, {
    method: 'POST',
    headers: { host, 'x-svc-preview-token': preview.token },
    agent: false,
  });
  asked.write('one');
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  response.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await waitUntil(() => text === 'got one;', 'the first part comes back');
  asked.end('two');
  await once(response, 'end');
  assert.equal(text, 'got one;got two;end');
});

test('a server that listens on a name with two addresses shows previews at each that it takes', async (t) => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
  const lookUp = (name: string, _options: unknown, done: (error: null, found: typeof addresses) => void) =>
    done(null, name === 'localhost' ? addresses : [{ address: name, family: 4 }]);
  t.mock.method(dns, 'lookup', lookUp);
  const { server, host, preview } = await show(t, (_incoming, response) => response.end('shown'), {
    host: 'localhost',
  });
  const headers = { host, 'x-svc-preview-token': preview.token };
  const reached: string[] = [];
  for (const { address } of addresses) {
    const asked = request(`http://${address}:${new URL(server.url).port}/`, { headers, agent: false }).end();
    const answered = once(asked, 'response') as Promise<[IncomingMessage]>;
    // A port without a listener shows nothing either.
    const [response] = await answered.catch(() => []);
    if (response === undefined) continue;
    reached.push(Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString());
  }
  assert.ok(reached.length > 0 && reached.every((text) => text === 'shown'), reached.join());
});

test('WebSockets pass in both directions, and end when their token is revoked', async (t) => {
  const shown = await show(t, (_incoming, response) => response.end(), { previewRecheckMs: 20 });
  const { server, service, host, preview, sandboxId } = shown;
  const sockets = new WebSocketServer({ server: service });
  t.after(() => sockets.clients.forEach((client) => client.terminate()));
  sockets.on('connection', (client, incoming) => {
    client.on('message', (data: Buffer) => client.send(`${incoming.url} ${data.toString()}`));
  });
  const url = `${server.url.replace('http', 'ws')}/chat?svc_preview_token=${preview.token}`;
  const socket = new WebSocket(url, { headers: { host, origin: `http://${host}` } });
  t.after(() => socket.terminate());
  await once(socket, 'open');
  socket.send('hello');
  const [message] = (await once(socket, 'message')) as [Buffer];
  assert.equal(message.toString(), '/chat hello');
  const closed = once(socket, 'close');
  socket.on('error', () => undefined);
  await server.rest('DELETE', `/sandboxes/${sandboxId}/previews/${preview.id}`);
  await closed;
  const refused = new WebSocket(`${server.url.replace('http', 'ws')}/chat`, { headers: { host } });
  refused.on('error', () => undefined);
  const [, answer] = (await once(refused, 'unexpected-response')) as [unknown, IncomingMessage];
  assert.equal(answer.statusCode, 401);
  refused.terminate();
});

test('a page of another preview cannot use the cookie of this one', async (t) => {
  const { server, host, preview } = await show(t, (_incoming, response) => response.end('private'));
  const cookie = `svc_preview_token=${preview.token}`;
  const foreign = [
    { origin: `http://3000-evil.${DOMAIN}` },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ];
  for (const headers of foreign) {
    const { status, text } = await ask(server, '/', { host, headers: { cookie, ...headers } });
    assert.equal(status, 403, JSON.stringify(headers));
    assert.ok(!text.includes('private'));
  }
  const own = [
    { origin: `http://${host}` },
    { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  ];
  for (const headers of own) {
    const { status } = await ask(server, '/', { host, headers: { cookie, ...headers } });
    assert.equal(status, 200, JSON.stringify(headers));
  }
});

test('answers of a service affect no other host: cookies lose their domain, headers for the whole site are removed', async (t) => {
  const { server, host, preview } = await show(t, (_incoming, response) => {
    response.appendHeader('Set-Cookie', `evil=1; Domain=${DOMAIN}; Path=/`);
    response.appendHeader('Set-Cookie', 'fine=1; Path=/; HttpOnly');
    response.appendHeader('Set-Cookie', 'svc_preview_token=svc_preview_other; Path=/');
    response.setHeader('Clear-Site-Data', '"*"');
    response.setHeader('Alt-Svc', 'h2="evil.example:443"');
    response.setHeader('Strict-Transport-Security', 'max-age=1');
    response.setHeader('Connection', 'X-Private');
    response.setHeader('X-Private', 'hop');
    response.setHeader('X-Public', 'kept');
    response.end();
  });
  const { headers } = await ask(server, '/', { host, headers: { 'x-svc-preview-token': preview.token } });
  assert.deepEqual(headers['set-cookie'], ['evil=1; Path=/', 'fine=1; Path=/; HttpOnly']);
  assert.equal(headers['x-public'], 'kept');
  for (const name of ['clear-site-data', 'alt-svc', 'strict-transport-security', 'x-private']) {
    assert.equal(headers[name], undefined, name);
  }
});

test('hosts of previews lead to sandboxes only, and every other host as before', async (t) => {
  const { server, host, preview } = await show(t, (incoming, response) =>
    response.end(`service ${incoming.url}`),
  );
  const token = { 'x-svc-preview-token': preview.token };
  for (const path of ['/v1/sandboxes', '/api/v1/rpc', '/health', '/%zz']) {
    assert.equal((await ask(server, path, { host, headers: token })).text, `service ${path}`);
    assert.equal((await ask(server, path, { host })).status, 401);
  }
  for (const other of [
    DOMAIN,
    `x.${DOMAIN}`,
    `0-my-app.${DOMAIN}`,
    `70000-my-app.${DOMAIN}`,
    `${host}.evil.test`,
  ]) {
    const { status, text } = await ask(server, '/v1/sandboxes', { host: other, headers: token });
    assert.equal(status, 403, `${other}: ${text}`);
  }
  // A page of a sandbox calls the API.
  const call = await ask(server, '/v1/sandboxes', {
    host: new URL(server.url).host,
    headers: { origin: `http://${host}` },
  });
  assert.equal(call.status, 403);
});

test('credentials of the server are not forwarded, those of the service are', async (t) => {
  const { server, host, preview } = await show(t, (incoming, response) => {
    const { authorization, cookie, ...headers } = incoming.headers;
    response.end([authorization, cookie, headers['x-api-key']].join('|'));
  });
  const send = async (headers: Record<string, string>) =>
    (await ask(server, '/', { host, headers: { ...headers, 'x-svc-preview-token': preview.token } })).text;
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  const session = await signSession(new Uint8Array(32), { id: 'one', userId: 'two', expiresAt });
  const ours = ['Bearer svc_0123', 'svc_0123', basic('x:svc_0123'), basic('svc_0123:'), `Bearer ${session}`];
  for (const authorization of ours) assert.equal(await send({ authorization }), '||', authorization);
  assert.equal(await send({ 'x-api-key': 'svc_0123' }), '||');
  assert.equal(await send({ cookie: `__Host-svc_session=${session}` }), '||');
  assert.equal(await send({ cookie: `a=1; svc_session=${session};__Host-svc_session=x; b=2` }), '|a=1; b=2|');
  for (const authorization of ['Bearer of-the-app', 'Bearer a.b.c', basic('me:word')])
    assert.equal(await send({ authorization, 'x-api-key': 'app' }), `${authorization}||app`);
});

test('a WebSocket does not carry a credential of the server on', async (t) => {
  const { server, host, preview, service } = await show(t, () => undefined);
  const offered: string[] = [];
  service.on('upgrade', (incoming: IncomingMessage, socket: { destroy: () => void }) => {
    offered.push(incoming.headers['sec-websocket-protocol'] ?? 'none');
    socket.destroy();
  });
  for (const protocols of [['chat', 'svc.bearer.svc_0123'], ['svc.bearer.svc_0123']]) {
    const headers = { host, 'x-svc-preview-token': preview.token };
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/`, protocols, { headers });
    await once(socket, 'error');
  }
  assert.deepEqual(offered, ['chat', 'none']);
});

test('a service that is not there, breaks off or talks nonsense is a 502 that says what to do', async (t) => {
  const { server, service, host, port, preview, sandboxId } = await show(t, (incoming, response) => {
    if (incoming.url === '/reset') incoming.socket.destroy();
    else incoming.socket.end('nonsense\r\n\r\n');
    void response;
  });
  const headers = { 'x-svc-preview-token': preview.token };
  for (const path of ['/reset', '/nonsense']) {
    const { status, text } = await ask(server, path, { host, headers });
    assert.equal(status, 502, text);
  }
  service.close();
  service.closeAllConnections();
  await waitUntil(async () => {
    const { status, text } = await ask(server, '/', { host, headers: { ...headers, accept: 'text/html' } });
    return status === 502 && text.includes(`Nothing answers on port ${port} of sandbox 'app'`);
  }, 'no listener');
  await server.rest('POST', `/sandboxes/${sandboxId}/stop`);
  await waitUntil(async () => (await ask(server, '/', { host, headers })).status === 503, 'it is stopped');
  const stopped = await ask(server, '/', { host, headers });
  assert.match(stopped.text, /svc start app/);
});

test('without a domain no token can be made', async (t) => {
  const server = await startTestServer(t);
  const { body } = await server.rest('POST', '/sandboxes', {
    body: { name: 'app', image: { type: 'oci', reference: 'python' } },
  });
  const reply = await server.rest('POST', `/sandboxes/${body.id}/previews`, { body: { port: 80 } });
  assert.deepEqual([reply.status, reply.body.error.code], [503, 'unavailable']);
  assert.match(reply.body.error.message, /--preview-domain/);
});
