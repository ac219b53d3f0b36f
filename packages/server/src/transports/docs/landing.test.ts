import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { startTestServer } from '../../testing/test-server.ts';
import { LANDING_STYLE } from './landing-style.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

test('a browser gets a page that loads nothing, and everybody else gets JSON', async (t) => {
  const { url } = await startTestServer(t);
  const page = await fetch(url, { headers: { accept: BROWSER } });
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'; style-src 'sha256-/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  const html = await page.text();
  const [whole = '', script = ''] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
  const hash = createHash('sha256').update(script).digest('base64');
  assert.ok(policy.includes(`script-src 'sha256-${hash}';`), 'only the script that copies');
  assert.doesNotMatch(html.replace(whole, ''), /<script|<img|<form|\son\w+=|style=|src=|@import/);
  for (const [, address = ''] of html.matchAll(/href="([^"]*)"/g)) assert.match(address, /^(\/|data:)/);

  for (const accept of ['application/json', '*/*', '', 'application/json, text/html;q=0.5']) {
    const answer = await fetch(url, { headers: { accept } });
    assert.deepEqual(await answer.json(), {
      name: 'svc',
      version: '0.1.0',
      needs_key: false,
      healthy: true,
      health: `${url}/api/v1/health`,
      docs: `${url}/docs`,
      openapi: `${url}/openapi.json`,
      rest: `${url}/v1`,
      rpc: `${url}/api/v1/rpc`,
      mcp: `${url}/mcp`,
    });
  }
  assert.equal((await fetch(url, { method: 'HEAD' })).status, 200);
  assert.equal((await fetch(url, { method: 'POST' })).status, 404);
});

test('every address that it names answers', async (t) => {
  const { url } = await startTestServer(t);
  const named = (await (await fetch(url)).json()) as Readonly<Record<string, string>>;
  for (const name of ['health', 'docs', 'openapi']) {
    assert.equal((await fetch(named[name] ?? '')).status, 200, name);
  }
  assert.equal((await fetch(`${named['rest']}/sandboxes`)).status, 200);
  const html = await (await fetch(url, { headers: { accept: BROWSER } })).text();
  const links = [...html.matchAll(/<a href="([^"]*)"/g)].map(([, path]) => path);
  assert.deepEqual(links, ['/docs', '/openapi.json', '/api/v1/health']);
});

test('a server with keys says that it needs one, and reveals nothing about any', async (t) => {
  const { url } = await startTestServer(t, { signingKey: randomBytes(32) });
  const html = await (await fetch(url, { headers: { accept: BROWSER } })).text();
  assert.match(html, /asks for a key/);
  assert.match(html, /svc apikey create/);
  assert.match(html, /Bearer \$SVC_API_KEY/);
  const open = await startTestServer(t);
  const other = await (await fetch(open.url, { headers: { accept: BROWSER } })).text();
  assert.match(other, /asks for no key/);
  assert.doesNotMatch(other, /SVC_API_KEY|Bearer/);
});

test('the page shows an unavailable engine, and keeps the scheme of a proxy', async (t) => {
  const { url, orchestrator, health } = await startTestServer(t);
  orchestrator.goAway();
  await waitUntil(() => !health.current.isHealthy, 'that it is away is noticed');
  const headers = { accept: BROWSER, 'x-forwarded-proto': 'https' };
  const html = await (await fetch(url, { headers })).text();
  assert.match(html, /Cannot run sandboxes: /);
  assert.ok(html.includes(`${url.replace('http:', 'https:')}/mcp`));
});

test('every block of lines has a button that copies it, and a name for readers of the screen', async (t) => {
  const { url } = await startTestServer(t, { signingKey: randomBytes(32) });
  const html = await (await fetch(`${url}/start`)).text();
  const blocks = [...html.matchAll(/<pre id="([^"]+)" tabindex="0" aria-labelledby="([^"]+)">/g)];
  assert.ok(blocks.length >= 8, `${blocks.length} blocks`);
  for (const [, id = '', name = ''] of blocks) {
    assert.ok(html.includes(`data-copies="${id}"`), id);
    assert.ok(html.includes(`<h3 id="${name}">`), name);
  }
});

test('the page has the colours and letters of the dashboard', async () => {
  const tokens = new URL('../../../../dashboard/src/app/style/tokens.css', import.meta.url);
  const valuesOf = (css: string) =>
    new Map(
      [...css.matchAll(/(--[\w-]+):\s*([^;]+);/g)].map(([, name = '', value = '']) => [
        name,
        value.replaceAll(/\s+/g, ' ').trim(),
      ]),
    );
  const wanted = valuesOf(await readFile(tokens, 'utf8'));
  for (const [name, value] of valuesOf(LANDING_STYLE)) assert.equal(value, wanted.get(name), name);
});
