import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { open, overHttp2, raw } from '../../testing/egress-attack.ts';
import { PLACEHOLDER, secret, SECRET_VALUE, type World } from '../../testing/https-world.ts';
import { exchangeTcp, rulesFor } from '../../testing/proxy-loopback.ts';
import { waitUntil } from '@svc/contract/testing';

const BODY_TOO = { headers: true, basicAuth: true, queryParams: true, body: true };
const basic = (password: string) => `Basic ${Buffer.from(`user:${password}`).toString('base64')}`;

test('an allowed host gets the value in headers and Basic, and nowhere else unless asked for', async (t) => {
  const world = await open(t, {});
  const body = `body ${PLACEHOLDER}`;
  const headers = { Authorization: `Bearer ${PLACEHOLDER}`, 'X-Basic': basic(PLACEHOLDER) };
  await world.ask('api.test', { method: 'POST', path: `/p?q=${PLACEHOLDER}`, headers, body });
  await world.ask('api.test', { headers: { Authorization: basic(PLACEHOLDER) } });
  const [first, second] = world.seen;
  assert.ok(first?.headers.includes(`Bearer ${SECRET_VALUE}`));
  assert.ok(first?.headers.includes(basic(PLACEHOLDER)), 'only Authorization is decoded');
  assert.equal(first?.url, `/p?q=${PLACEHOLDER}`);
  assert.equal(first?.body, body);
  assert.ok(second?.headers.includes(basic(SECRET_VALUE)));
  assert.deepEqual(world.violations, []);
});

test('an allowed host gets the value in the headers that are named alone', async (t) => {
  const places = { headers: true, headerFields: ['x-api-key'], basicAuth: false };
  const world = await open(t, {
    secrets: [secret({ injection: { ...places, queryParams: false, body: false } })],
  });
  const headers = { 'X-Api-Key': PLACEHOLDER, 'X-Echo': PLACEHOLDER, Authorization: basic(PLACEHOLDER) };
  await world.ask('api.test', { headers });
  const [seen] = world.seen;
  assert.deepEqual(seen?.headers.filter((value) => value === SECRET_VALUE).length, 1);
  assert.ok(seen?.headers.includes(PLACEHOLDER), 'the other header is as it was');
  assert.ok(seen?.headers.includes(basic(PLACEHOLDER)));
  assert.deepEqual(world.violations, []);
});

test('an allowed host gets the value in query and body when that is asked for, with the right length', async (t) => {
  const world = await open(t, { secrets: [secret({ injection: BODY_TOO, value: 'a&b="c"' })] });
  const json = { 'content-type': 'application/json' };
  await world.ask('api.test', {
    method: 'POST',
    path: '/p?q=%24MSB_API_KEY&r',
    headers: json,
    body: `{"key":"${PLACEHOLDER}"}`,
  });
  const form = { 'content-type': 'application/x-www-form-urlencoded', 'transfer-encoding': 'chunked' };
  await world.ask('api.test', { method: 'POST', headers: form, body: `key=%24MSB_API_KEY&x=1` });
  assert.equal(world.seen[0]?.url, '/p?q=a%26b%3D%22c%22&r');
  assert.equal(world.seen[0]?.body, '{"key":"a&b=\\"c\\""}');
  assert.equal(world.seen[1]?.body, 'key=a%26b%3D%22c%22&x=1');
});

test('a host that is not allowed never sees a placeholder, however it is written and wherever it stands', async (t) => {
  const escaped = '\\u0024MSB\\u005fAPI_KEY';
  const cases: readonly Parameters<World['ask']>[1][] = [
    { headers: { Authorization: `Bearer ${PLACEHOLDER}` } },
    { headers: { Authorization: basic(PLACEHOLDER) } },
    { headers: { 'Proxy-Authorization': basic(PLACEHOLDER) } },
    { headers: { [PLACEHOLDER]: 'as a name' } },
    { headers: { Cookie: 'a=%24MSB_API_KEY' } },
    { path: `/${PLACEHOLDER}` },
    { path: '/?a=%24%4D%53%42_API_KEY' },
    { method: 'POST', body: `x${PLACEHOLDER}y` },
    { method: 'POST', body: `{"a":"${escaped}"}` },
    { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'a=%24MSB_API_KEY' },
  ];
  for (const request of cases) {
    const world = await open(t, {});
    await assert.rejects(world.ask('other.test', request), { code: 'ECONNRESET' }, JSON.stringify(request));
    await waitUntil(() => world.violations.length === 1);
    assert.deepEqual(world.begun, [], JSON.stringify(request));
    const { action, host, envVars } = world.violations[0] ?? {};
    assert.deepEqual([action, host, envVars], ['block_and_log', 'other.test', ['API_KEY']]);
  }
});

test('a violation is told without its query, and by the strictest of all that were violated', async (t) => {
  const secrets = [
    secret({ onViolation: { type: 'block' } }),
    secret({ envVar: 'OTHER', placeholder: '$OTHER', onViolation: { type: 'block_and_terminate' } }),
  ];
  const world = await open(t, { secrets });
  await assert.rejects(
    world.ask('other.test', { path: `/p/q?token=x`, headers: { a: PLACEHOLDER, b: '$OTHER' } }),
  );
  await waitUntil(() => world.violations.length === 1);
  assert.deepEqual(world.violations, [
    {
      action: 'block_and_terminate',
      method: 'GET',
      host: 'other.test',
      path: '/p/q',
      envVars: ['API_KEY', 'OTHER'],
    },
  ]);
});

test('passthrough sends the placeholder as it is to the hosts named', async (t) => {
  const onViolation = { type: 'passthrough', hosts: [{ type: 'exact', value: 'other.test' }] } as const;
  const world = await open(t, { onViolation });
  await world.ask('other.test', { headers: { Authorization: PLACEHOLDER } });
  assert.ok(world.seen[0]?.headers.includes(PLACEHOLDER));
});

test('a placeholder cut into single bytes is still one', async (t) => {
  const world = await open(t, {});
  const socket = await world.connect('other.test');
  socket.setNoDelay(true).on('error', () => undefined);
  const closed = once(socket, 'close').catch(() => undefined);
  const bytes = `POST / HTTP/1.1\r\nHost: other.test\r\nTransfer-Encoding: chunked\r\n\r\n${Array.from(
    PLACEHOLDER,
  )
    .map((one) => `1\r\n${one}\r\n`)
    .join('')}0\r\n\r\n`;
  for (const byte of bytes) {
    if (socket.writable) socket.write(byte);
    await new Promise(setImmediate);
  }
  await closed;
  assert.equal(world.violations.length, 1);
  assert.deepEqual(world.begun, []);
});

test('a placeholder in a trailer is one in a header', async (t) => {
  const message = (host: string) =>
    `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Late: ${PLACEHOLDER}\r\n\r\n`;
  const world = await open(t, {});
  assert.equal(await raw(world, 'other.test', message('other.test')), '');
  await waitUntil(() => world.violations.length === 1);
  assert.deepEqual(world.begun, []);
  await raw(world, 'api.test', message('api.test'));
  assert.deepEqual(
    world.seen.map(({ trailers }) => trailers),
    [['X-Late', SECRET_VALUE]],
  );
});

test('compressed bodies are not searched, and no value is put into them', async (t) => {
  const world = await open(t, { secrets: [secret({ injection: BODY_TOO })] });
  const body = gzipSync(`key=${PLACEHOLDER}`);
  for (const host of ['api.test', 'other.test'])
    await world.ask(host, { method: 'POST', headers: { 'content-encoding': 'gzip' }, body });
  assert.deepEqual(
    world.seen.map((seen) => seen.body),
    [body.toString('latin1'), body.toString('latin1')],
  );
});

test('a body that would have to be rewritten and is too long is stopped before it is sent', async (t) => {
  const world = await open(t, { secrets: [secret({ injection: BODY_TOO })] });
  const head = `POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: ${(16 << 20) + 1}\r\n\r\n`;
  assert.equal(await raw(world, 'api.test', head), '');
  await waitUntil(() => world.violations.length === 1);
  assert.deepEqual(world.seen, []);
});

test('long values for short placeholders are not filled in without a bound', async (t) => {
  const secrets = [secret({ placeholder: 'ab', value: 'x'.repeat(16_384), injection: BODY_TOO })];
  const text = 'ab'.repeat(30_000);
  const cases: readonly Parameters<World['ask']>[1][] = [
    { method: 'POST', body: text },
    { method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: text },
    { headers: { X: text.slice(0, 2000) } },
    { path: `/?${text.slice(0, 2000)}` },
  ];
  for (const request of cases) {
    const world = await open(t, { secrets });
    await assert.rejects(world.ask('api.test', request), { code: 'ECONNRESET' });
    await waitUntil(() => world.violations.length === 1);
    assert.deepEqual(world.seen, []);
  }
  const world = await open(t, { secrets });
  await world.ask('api.test', { method: 'POST', body: 'ab'.repeat(32) });
  assert.equal(world.seen[0]?.body.length, 32 * 16_384);
});

test('a value with a line end never becomes two headers', async (t) => {
  const world = await open(t, { secrets: [secret({ value: 'a\r\nX-Evil: b' })] });
  await assert.rejects(world.ask('api.test', { headers: { a: PLACEHOLDER } }), { code: 'ECONNRESET' });
  assert.deepEqual(world.seen, []);
});

test('a name that led elsewhere, or a server that cannot prove it, gets no value', async (t) => {
  const rules = { ...rulesFor(['api.test']), isPinned: () => false };
  const unpinned = await open(t, { rules });
  await assert.rejects(unpinned.ask('api.test', { headers: { a: PLACEHOLDER } }));
  const unproven = await open(t, { isServerTrusted: false, trust: { verifyUpstream: false } });
  await assert.rejects(unproven.ask('api.test', { headers: { a: PLACEHOLDER } }));
  for (const world of [unpinned, unproven]) assert.deepEqual(world.seen, []);
});

test('domain fronting: a request for another host than the connection is for goes nowhere', async (t) => {
  for (const http2 of [false, true]) {
    const world = await open(t, { http2, rules: rulesFor('all') });
    const headers = { Authorization: PLACEHOLDER };
    const status = http2
      ? await overHttp2(world, 'other.test', { ':authority': 'api.test', authorization: PLACEHOLDER })
      : (await world.ask('other.test', { headers: { ...headers, host: 'api.test' } })).status;
    assert.equal(status, 421);
    assert.deepEqual(world.seen, []);
    assert.deepEqual(
      world.refusals.map(({ name, reason }) => [name, reason]),
      [['api.test', 'not_one_host']],
    );
  }
});

test('two hosts, a foreign target, another port or CONNECT are not one host', async (t) => {
  const heads = [
    'GET / HTTP/1.1\r\nHost: api.test\r\nHost: other.test\r\n',
    'GET / HTTP/1.1\r\nHost: other.test\r\nHost: api.test\r\n',
    'GET https://other.test/ HTTP/1.1\r\nHost: api.test\r\n',
    'GET / HTTP/1.1\r\nHost: api.test:1\r\n',
    'GET / HTTP/1.1\r\nHost: user@api.test\r\n',
    'GET / HTTP/1.0\r\n',
    'GET / HTTP/1.1\r\n',
    'CONNECT other.test:443 HTTP/1.1\r\nHost: api.test\r\n',
  ];
  for (const head of heads) {
    const world = await open(t, {});
    assert.match(
      await raw(world, 'api.test', `${head}Authorization: ${PLACEHOLDER}\r\n\r\n`),
      /^$|^HTTP\/1.1 4/,
      head,
    );
    assert.deepEqual(world.seen, [], head);
  }
});

test('requests that two servers could read in two ways are not passed on as they are', async (t) => {
  const smuggled = `GET /smuggled HTTP/1.1\r\nHost: api.test\r\nX: ${PLACEHOLDER}\r\n\r\n`;
  const length = Buffer.byteLength(smuggled);
  const heads = [
    `Content-Length: ${length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    `Content-Length: 0\r\nContent-Length: ${length}\r\n\r\n${smuggled}`,
    `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `X: y\n Transfer-Encoding: chunked\r\n\r\n${smuggled}`,
    `Content-Length: +5\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n5;\nevil\r\nhello\r\n0\r\n\r\n${smuggled}`,
  ];
  for (const head of heads) {
    const world = await open(t, {});
    await raw(world, 'api.test', `POST / HTTP/1.1\r\nHost: api.test\r\n${head}`);
    assert.ok(!world.seen.some(({ url }) => url === '/smuggled'), head);
    assert.ok(!world.everything().includes(SECRET_VALUE), head);
  }
});

test('a folded header is refused, or read as the one it is', async (t) => {
  const world = await open(t, {});
  await raw(
    world,
    'other.test',
    'GET / HTTP/1.1\r\nHost: other.test\r\nAuthorization: $MSB\r\n _API_KEY\r\n\r\n',
  );
  assert.ok(!world.everything().includes(PLACEHOLDER) && !world.everything().includes(SECRET_VALUE));
});

test('of requests sent ahead, those before a violation pass and none behind it', async (t) => {
  const world = await open(t, {});
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: other.test\r\n${more}\r\n`;
  await raw(world, 'other.test', get('/1') + get('/2', `X: ${PLACEHOLDER}\r\n`) + get('/3'));
  await waitUntil(() => world.violations.length === 1);
  assert.ok(world.seen.every(({ url }) => url === '/1'));
  assert.ok(!world.everything().includes(PLACEHOLDER));
});

test('over HTTP/2 headers get the value, a body with a placeholder does not pass, also in many frames', async (t) => {
  const world = await open(t, { http2: true, secrets: [secret({ injection: BODY_TOO })] });
  assert.equal(await overHttp2(world, 'api.test', { authorization: `Bearer ${PLACEHOLDER}` }), 200);
  assert.ok(world.seen[0]?.headers.includes(`Bearer ${SECRET_VALUE}`));
  assert.equal(await overHttp2(world, 'api.test', { ':method': 'POST' }, Array.from(PLACEHOLDER)), 'reset');
  assert.equal(await overHttp2(world, 'other.test', { ':path': '/?a=%24MSB_API_KEY' }), 'reset');
  assert.equal(await overHttp2(world, 'other.test', { authorization: basic(PLACEHOLDER) }), 'reset');
  assert.equal(
    await overHttp2(world, 'other.test', { ':method': 'POST' }, Array.from(`x${PLACEHOLDER}`)),
    'reset',
  );
  assert.equal(world.seen.length, 1);
  assert.deepEqual(world.begun, ['GET /', 'POST /'], 'the host that is not allowed saw nothing');
  assert.equal(world.violations.length, 4);
});

test('an HTTP/2 head that never ends is cut off', async (t) => {
  const world = await open(t, { http2: true });
  const socket = await world.connect('api.test', ['h2']);
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  const frame = (type: number, flags: number, payload: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(type === 4 ? 0 : 1, 5);
    return Buffer.concat([head, payload]);
  };
  socket.resume();
  socket.write(
    Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(4, 0, Buffer.alloc(0)),
      frame(1, 0, Buffer.from([0x82])),
    ]),
  );
  // A literal header that is not remembered, over and over, in frames that promise more.
  const more = frame(
    9,
    0,
    Buffer.concat(
      Array.from({ length: 300 }, () => Buffer.from('\0\x01a\x20'.concat('b'.repeat(32)), 'latin1')),
    ),
  );
  for (let count = 0; count < 2000 && socket.writable; count++)
    if (!socket.write(more)) await Promise.race([once(socket, 'drain'), closed]);
  await closed;
  assert.deepEqual(world.seen, []);
  assert.equal((await world.ask('api.test')).status, 200, 'others go on');
});

test('an answer that leads to a denied host leads nowhere', async (t) => {
  const world = await open(t, {
    rules: rulesFor(['api.test']),
    onRequest: () => ({ status: 302, headers: { location: 'https://denied.test/' } }),
  });
  assert.equal((await world.ask('api.test')).headers.location, 'https://denied.test/');
  const before = world.connections.size;
  await assert.rejects(world.ask('denied.test', { headers: { Authorization: PLACEHOLDER } }), {
    code: 'ECONNRESET',
  });
  assert.equal(world.connections.size, before);
});

test('over a plain connection a value passes only where that was asked for', async (t) => {
  const request = (host: string) =>
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nX: ${PLACEHOLDER}\r\n\r\n`;
  const careful = await open(t, { plain: true });
  assert.equal(await exchangeTcp(careful.proxy.port, request('api.test'), { end: false }), 'ECONNRESET');
  assert.deepEqual(careful.seen, []);
  const trusting = await open(t, { plain: true, secrets: [secret({ requireTlsIdentity: false })] });
  assert.match(await exchangeTcp(trusting.proxy.port, request('api.test'), { end: false }), /^HTTP\/1.1 200/);
  assert.ok(trusting.seen[0]?.headers.includes(SECRET_VALUE));
});
