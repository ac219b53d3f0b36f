import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { chunksOf } from '../client/byte-content.ts';
import { nodeFetch } from './node-fetch.ts';

async function serve(t: TestContext, answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  let connections = 0;
  server.on('connection', () => (connections += 1));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, count: () => connections };
}

function bodyOf(response: Response): NonNullable<Response['body']> {
  assert.ok(response.body);
  return response.body;
}

test('calls one after the other use one connection, also after a stream that was read to its end', async (t) => {
  const { url, count } = await serve(t, (request, response) => {
    if (request.url === '/whole') return response.end('{"is":"whole"}');
    response.write('one ');
    return response.end('two ');
  });
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(await (await nodeFetch(`${url}whole`)).json(), { is: 'whole' });
    let text = '';
    for await (const chunk of chunksOf(bodyOf(await nodeFetch(url, { method: 'POST', body: '{}' }))))
      text += Buffer.from(chunk).toString();
    assert.equal(text, 'one two ');
  }
  assert.equal(count(), 1);
});

test('a redirect is not followed, so no other host gets the credential', async (t) => {
  const asked: string[] = [];
  const other = await serve(t, (_request, response) => {
    asked.push('other');
    response.end();
  });
  const { url } = await serve(t, (_request, response) =>
    response.writeHead(307, { location: other.url }).end(),
  );
  const response = await nodeFetch(url, { headers: { authorization: 'Bearer svc_key' }, redirect: 'error' });
  assert.deepEqual([response.ok, response.status, asked], [false, 307, []]);
});

test('a stream that is left closes its connection, and one whose caller aborts fails', async (t) => {
  const closed: Promise<unknown>[] = [];
  const { url } = await serve(t, (request, response) => {
    closed.push(once(request.socket, 'close'));
    response.write('first');
  });
  for await (const chunk of chunksOf(bodyOf(await nodeFetch(url)))) {
    assert.equal(Buffer.from(chunk).toString(), 'first');
    break;
  }
  await closed[0];
  const gone = new AbortController();
  const chunks = chunksOf(bodyOf(await nodeFetch(url, { signal: gone.signal })));
  await chunks.next();
  gone.abort();
  await assert.rejects(chunks.next());
  await closed[1];
  await assert.rejects(nodeFetch(url, { signal: gone.signal }), { name: 'AbortError' });
  assert.equal(closed.length, 2);
});

test('with a proxy of the environment or of the program, calls use fetch', async (t) => {
  const { fetch } = globalThis;
  t.after(() => {
    globalThis.fetch = fetch;
    delete process.env['NODE_USE_ENV_PROXY'];
  });
  const { url } = await serve(t, ({ headers }, response) =>
    response.end(headers['sec-fetch-mode'] ?? 'none'),
  );
  const ask = async () => await (await nodeFetch(url)).text();
  assert.equal(await ask(), 'none');
  process.env['NODE_USE_ENV_PROXY'] = '1';
  assert.equal(await ask(), 'cors');
  delete process.env['NODE_USE_ENV_PROXY'];
  globalThis.fetch = () => Promise.resolve(new Response('by a program'));
  assert.equal(await ask(), 'by a program');
});
