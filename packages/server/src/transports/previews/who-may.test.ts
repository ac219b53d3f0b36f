import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { ask, DOMAIN, show } from '../../testing/shown-port.ts';

const LOCAL = { previews: { domain: 'localhost', scheme: 'http', port: null } } as const;

test('on a development server its own machine needs no token, and pages of other sites get nothing', async (t) => {
  const { server, port, sandboxId } = await show(
    t,
    (incoming, response) => response.end(`page for ${incoming.headers.host}`),
    LOCAL,
  );
  const host = `${port}-app.localhost`;
  const own = `http://${host}`;
  const opened = await server.rest('POST', `/sandboxes/${sandboxId}/previews/open`, { body: { port } });
  assert.deepEqual(
    [opened.status, opened.body],
    [
      200,
      {
        port,
        url: `http://${host}:${new URL(server.url).port}/`,
        access: 'open',
        preview_id: null,
        expires_at: null,
      },
    ],
  );
  const statusOf = async (headers: Readonly<Record<string, string>>, method = 'GET') =>
    (await ask(server, '/', { host, headers, method })).status;
  assert.equal(await statusOf({}), 200, 'a program');
  assert.equal(
    (await ask(server, '/', { host: `${port}-my-app.localhost` })).text,
    `page for ${port}-my-app.localhost`,
  );
  assert.equal(await statusOf({ origin: own }, 'POST'), 200, 'its own page');
  const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
  assert.equal(await statusOf(link), 200, 'a followed link');
  for (const foreign of [
    { origin: 'https://evil.test' },
    { origin: 'null' },
    { origin: `http://${port}-other.localhost` },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ])
    assert.equal(await statusOf(foreign), 403, JSON.stringify(foreign));
  assert.equal((await ask(server, '/', { host: `${port}-none.localhost` })).status, 404);
  assert.equal(
    (await ask(server, '/', { host: `${port}-app.localhost.evil.test` })).status,
    403,
    'a name that was led here',
  );
});

test('with keys a name below localhost opens with a token, which the address to open has in it', async (t) => {
  const {
    server,
    port,
    sandboxId,
    key = '',
  } = await show(t, (_incoming, response) => response.end('page'), {
    ...LOCAL,
    signingKey: new Uint8Array(32).fill(1),
  });
  const host = `${port}-my-app.localhost`;
  assert.equal((await ask(server, '/', { host })).status, 401);
  const { body } = await server.rest('POST', `/sandboxes/${sandboxId}/previews/open`, {
    key,
    body: { port, expires_in_secs: 60 },
  });
  assert.equal(body.access, 'token');
  const { search, hostname } = new URL(body.url);
  assert.equal(hostname, host);
  assert.equal((await ask(server, `/${search}`, { host })).text, 'page');
  const path = `/sandboxes/${sandboxId}/previews/${body.preview_id}`;
  assert.equal((await server.rest('DELETE', path, { key })).status, 200);
  assert.equal((await ask(server, `/${search}`, { host })).status, 401);
});

test('a public port needs no token until it is revoked or expires, and always expires', async (t) => {
  const { server, host, port, sandboxId } = await show(t, (_incoming, response) => response.end('page'));
  const path = `/sandboxes/${sandboxId}/previews`;
  const endless = await server.rest('POST', path, { body: { port, public: true } });
  assert.deepEqual([endless.status, endless.body.error.details.field], [400, 'expires_in_secs']);
  const share = async () =>
    (await server.rest('POST', path, { body: { port, public: true, expires_in_secs: 60 } })).body;
  const statusOf = async () =>
    (await ask(server, '/', { host, headers: { origin: 'https://elsewhere.test' } })).status;
  const first = await share();
  assert.deepEqual([first.token, first.access, first.prefix], [null, 'public', '']);
  assert.equal(await statusOf(), 200);
  const opened = await server.rest('POST', `${path}/open`, { body: { port } });
  assert.deepEqual([opened.body.access, opened.body.url], ['public', first.url]);
  assert.equal((await ask(server, '/', { host: `${port + 1}-my-app.${DOMAIN}` })).status, 401);
  assert.equal((await server.rest('DELETE', `${path}/${first.id}`)).status, 200);
  assert.equal(await statusOf(), 401);
  await share();
  assert.equal(await statusOf(), 200);
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 61_000 });
  assert.equal(await statusOf(), 401);
});

test('an open answer ends when its token is revoked', async (t) => {
  const { server, host, preview, sandboxId } = await show(
    t,
    (_incoming, response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
    { previewRecheckMs: 20 },
  );
  const asked = request(`${server.url}/`, {
    headers: { host, 'x-svc-preview-token': preview.token },
    agent: false,
  });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const [first] = (await once(response, 'data')) as [Buffer];
  assert.equal(first.toString(), 'data: 1\n\n');
  response.resume();
  const ended = once(response, 'close').catch(() => undefined);
  assert.equal((await server.rest('DELETE', `/sandboxes/${sandboxId}/previews/${preview.id}`)).status, 200);
  await ended;
});
