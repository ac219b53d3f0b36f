import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startTestServer } from '../../testing/test-server.ts';
import { DashboardBuild } from './dashboard-build.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const PAGE = '<!doctype html><title>built</title>';
const SCRIPT = 'assets/index-abc123.js';

async function makeBuild(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-build-'));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

async function fill(folder: string): Promise<void> {
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), PAGE);
  await writeFile(join(folder, SCRIPT), 'let built;');
  await writeFile(join(folder, `${SCRIPT}.gz`), gzipSync('let built;'));
  await writeFile(join(folder, '.made-of'), 'a stamp');
}

async function start(t: TestContext) {
  const folder = await makeBuild(t);
  await fill(folder);
  const { url } = await startTestServer(t, { dashboard: new DashboardBuild(folder) });
  const get = (path: string, headers: Record<string, string> = { accept: BROWSER }) =>
    fetch(`${url}${path}`, { headers });
  return { url, get };
}

test('a browser gets the dashboard at its addresses, with a policy that allows nothing inline and no frame', async (t) => {
  const { get } = await start(t);
  for (const path of ['/', '/sign-in', '/account/security', '/orgs/acme/sandboxes/1/files']) {
    const answer = await get(path);
    assert.equal(answer.status, 200, path);
    assert.equal(await answer.text(), PAGE);
    const policy = answer.headers.get('content-security-policy') ?? '';
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(answer.headers.get('x-frame-options'), 'DENY');
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(answer.headers.get('cache-control'), 'no-cache');
    const again = await get(path, { accept: BROWSER, 'if-none-match': answer.headers.get('etag') ?? '' });
    assert.equal(again.status, 304);
  }
});

test('no address of the API becomes a page, and programs get at / what they got before', async (t) => {
  const { url, get } = await start(t);
  for (const path of ['/v1/nothing', '/api/v1/nothing', '/v1/orgs/unknown', '/nothing', '/orgsx']) {
    const answer = await get(path);
    assert.notEqual(answer.status, 200, path);
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/, path);
  }
  const facts = (await (await get('/', { accept: 'application/json' })).json()) as { readonly rest: string };
  assert.equal(facts.rest, `${url}/v1`);
  assert.equal((await fetch(url, { method: 'POST' })).status, 404);
  const begin = await get('/start');
  assert.match(await begin.text(), /svc run/);
});

test('assets are kept for a year, compressed where that is understood, and nothing else of the folder is there', async (t) => {
  const { get } = await start(t);
  const plain = await get(`/${SCRIPT}`, { 'accept-encoding': 'gzip;q=0' });
  assert.equal(plain.headers.get('content-encoding'), null);
  assert.match(plain.headers.get('cache-control') ?? '', /max-age=31536000, immutable/);
  assert.match(plain.headers.get('content-type') ?? '', /^text\/javascript/);
  const compressed = await get(`/${SCRIPT}`, { 'accept-encoding': 'br, gzip' });
  assert.equal(compressed.headers.get('content-encoding'), 'gzip');
  assert.equal(await compressed.text(), await plain.text());
  for (const path of [
    '.made-of',
    '../.made-of',
    '..%2f.made-of',
    '..%2findex.html',
    'index-abc123.js.gz',
    '%00',
    'none.js',
  ])
    assert.equal((await get(`/assets/${path}`)).status, 404, path);
});

test('without a build the start page is served, and a later build is found', async (t) => {
  const folder = await makeBuild(t);
  const { url } = await startTestServer(t, { dashboard: new DashboardBuild(join(folder, 'build')) });
  const look = async (path: string) => await fetch(`${url}${path}`, { headers: { accept: BROWSER } });
  assert.match(await (await look('/')).text(), /svc run/);
  assert.equal((await look('/sign-in')).status, 404);
  await mkdir(join(folder, 'build'));
  await fill(join(folder, 'build'));
  assert.equal(await (await look('/')).text(), PAGE);
});

test('a build that is made anew while the server runs is not mixed with the one that it shows', async (t) => {
  const folder = await makeBuild(t);
  await fill(folder);
  const { url } = await startTestServer(t, { dashboard: new DashboardBuild(folder) });
  const look = async (path: string) => await fetch(`${url}${path}`, { headers: { accept: BROWSER } });
  await look('/');
  await rm(join(folder, 'assets'), { recursive: true });
  await writeFile(join(folder, 'index.html'), 'another');
  assert.equal(await (await look('/')).text(), PAGE);
  assert.equal((await look(`/${SCRIPT}`)).status, 200);
});
