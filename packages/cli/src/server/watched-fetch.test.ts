import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { nodeFetch } from '@svc/sdk/node';
import { watchedFetch } from './watched-fetch.ts';

const TIMEOUT_MS = 1000;

async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a server that answers nothing is given up, and asked nothing more', async (t) => {
  let asked = 0;
  const url = await serve(t, () => (asked += 1));
  const fetch = watchedFetch(nodeFetch, `${url}/health`, TIMEOUT_MS);
  const isSilent = (error: unknown) =>
    error instanceof Error && String(error.cause).includes('it has not answered for 1s');
  await assert.rejects(fetch(`${url}/work`), isSilent);
  assert.equal(asked, 2);
  await assert.rejects(fetch(`${url}/work`), isSilent);
  assert.equal(asked, 2);
});

test('work that takes longer than that is waited for while the server is well', async (t) => {
  let asked = 0;
  const waiting: (() => void)[] = [];
  const url = await serve(t, (request, response) => {
    if (request.url !== '/health') {
      waiting.push(() => response.end('done'));
      return;
    }
    response.end('well');
    asked += 1;
    // By now it has been quiet for longer than a silent one may be.
    if (asked > 5) for (const finish of waiting) finish();
  });
  const fetch = watchedFetch(nodeFetch, `${url}/health`, TIMEOUT_MS);
  assert.equal(await (await fetch(`${url}/work`)).text(), 'done');
});

test('a server that is not there is not called silent, and a caller who leaves is let go', async (t) => {
  const url = await serve(t, () => {});
  const leaving = new AbortController();
  const fetch = watchedFetch(nodeFetch, `${url}/health`, 60_000);
  const left = fetch(`${url}/work`, { signal: leaving.signal });
  leaving.abort();
  await assert.rejects(left, (error) => !String((error as Error).cause).includes('has not answered'));
  const nowhere = watchedFetch(nodeFetch, 'http://127.0.0.1:1/health', TIMEOUT_MS);
  await assert.rejects(nowhere('http://127.0.0.1:1/'), (error) =>
    /ECONNREFUSED/.test(String((error as Error).cause)),
  );
});
