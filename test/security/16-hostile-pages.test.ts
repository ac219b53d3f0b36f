import assert from 'node:assert/strict';
import { after, before, suite, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { openChannel } from '../../packages/server/src/testing/channel.ts';
import { openBrowser } from '../clients/open-browser.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from '../e2e/start-server.ts';

/**
 * A page of a sandbox in a real browser whose user also uses the API and another preview: it can read neither. The server
 * is one of development, which asks for no key, nor for tokens of previews on its own machine: nothing but where a request comes
 * from keeps a page out.
 */
const DOMAIN = 'localhost';
const REBOUND = 'rebound.test';

suite('hostile pages', { concurrency: false }, () => {
  let server: TestServer;
  let port = '';
  let victimId = '';
  const previews = { hostile: '', victim: '' };

  before(async () => {
    server = await TestServer.start({
      args: ['--dev'],
      engineArgs: ['--isolation', 'container'],
    });
    port = new URL(server.url).port;
  });
  after(() => server.destroy());

  const rest = async (method: string, path: string, payload?: unknown) => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
    });
    const body = (await response.json()) as {
      readonly id: string;
      readonly status: string;
      readonly token: string;
      readonly data: unknown[];
    };
    assert.ok(response.ok, JSON.stringify(body));
    return body;
  };
  const namesOfSandboxes = async () =>
    (await rest('GET', '/sandboxes')).data.map((each) => (each as { readonly name: string }).name).toSorted();

  /** A sandbox that serves these files; returns the address that opens its preview. */
  async function serve(
    t: TestContext,
    name: string,
    files: Readonly<Record<string, string>>,
  ): Promise<string> {
    const spec = { name, slug: name, image: { type: 'oci', reference: BUSYBOX } };
    const { id } = await rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', spec);
    const { channel } = await openChannel(t, { url: server.url, sandboxId: id });
    await channel.files.mkdir('/www');
    for (const [path, content] of Object.entries(files))
      await channel.files.writeFile(`/www/${path}`, Buffer.from(content));
    await rest('POST', `/sandboxes/${id}/processes`, {
      cmd: 'httpd',
      args: ['-f', '-p', '8000', '-h', '/www'],
    });
    if (name === 'victim') victimId = id;
    const { token } = await rest('POST', `/sandboxes/${id}/previews`, { port: 8000 });
    const url = `http://8000-${name}.${DOMAIN}:${port}/?svc_preview_token=${token}`;
    await waitUntil(
      async () =>
        (
          await fetch(`${server.url}/index.html`, {
            headers: { host: new URL(url).host, 'x-svc-preview-token': token },
          }).catch(() => undefined)
        )?.status !== 502,
      { what: 'it serves' },
    );
    return url;
  }

  test('a page of a preview can read neither the API nor other previews', async (t) => {
    const page = {
      'index.html': '<!doctype html><title>page</title>',
      'secret.js': 'window.leaked = "secret"',
    };
    previews.hostile = await serve(t, 'hostile', page);
    previews.victim = await serve(t, 'victim', page);
    const origin = (address: string) => new URL(address).origin;
    const browser = await openBrowser(t, previews.victim);
    const own = `fetch('/secret.js').then((answer) => answer.text())`;
    assert.match(String(await browser.evaluate(own)), /leaked/, 'its own page works');
    await browser.goto(previews.hostile);
    assert.match(String(await browser.evaluate(own)), /leaked/, 'and so does the hostile one');
    assert.equal(await browser.evaluate('location.search'), '', 'the token does not stay in the address');

    const before = await namesOfSandboxes();
    const apis = [server.url, `http://localhost:${port}`, `http://api.localhost:${port}`];
    for (const api of apis) {
      const found = await browser.evaluate(attackOn(api, origin(previews.victim), victimId));
      assert.deepEqual(found, NOTHING, api);
    }
    assert.deepEqual(await namesOfSandboxes(), before, 'nothing was made');
    assert.equal((await rest('GET', `/sandboxes/${victimId}`)).status, 'running', 'nothing was stopped');

    await browser.goto(origin(previews.victim));
    assert.match(String(await browser.evaluate(own)), /leaked/, 'the victim is served as before');
  });

  test('a name that was led here opens nothing', async (t) => {
    const before = await namesOfSandboxes();
    const url = `http://${REBOUND}:${port}/`;
    // Newer browsers ask their user about it; nothing here may rest on that.
    const older = ['--disable-features=LocalNetworkAccessChecks'];
    const browser = await openBrowser(t, url, [], [REBOUND], older);
    // DNS rebinding: the page was loaded from another address of the same name.
    await browser.route(url, async (route) => await route.fulfill({ contentType: 'text/html', body: '' }));
    await browser.goto(url);
    const ask = (path: string, options: string) =>
      browser.evaluate(`fetch('${path}', ${options}).then(({ status }) => status)`);
    const body = `body: ${JSON.stringify(JSON.stringify(INTRUDER))}, headers: { 'content-type': 'application/json' }`;
    assert.equal(await ask('/v1/sandboxes', '{}'), 403);
    assert.equal(await ask('/v1/sandboxes', `{ method: 'POST', ${body} }`), 403);
    assert.equal(await ask('/api/v1/rpc', `{ method: 'POST', ${body} }`), 403);
    assert.equal(await ask('/mcp', `{ method: 'POST', ${body} }`), 403);
    assert.equal(await ask('/docs', '{}'), 403);
    assert.deepEqual(await namesOfSandboxes(), before);
  });

  test('/docs runs its own script alone, and cannot be framed', async (t) => {
    const browser = await openBrowser(t, `${server.url}/docs?<script>window.intruded=1</script>`);
    await browser.goto(`${server.url}/docs#<img src=x onerror=window.intruded=1>`);
    const run = `new Promise((resolve) => {
      const script = document.createElement('script');
      script.textContent = 'window.intruded = 1';
      document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<img src="data:," onerror="window.intruded = 1"><base href="http://elsewhere.test/">');
      setTimeout(() => resolve({ intruded: window.intruded ?? null, base: document.baseURI.startsWith(location.origin) }), 500);
    })`;
    assert.deepEqual(await browser.evaluate(run), { intruded: null, base: true });
    const { headers } = await fetch(`${server.url}/docs`);
    assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    const filter = `(() => {
      const field = document.querySelector('#filter');
      field.value = 'volumes';
      field.dispatchEvent(new Event('input', { bubbles: true }));
      return [...document.querySelectorAll('details')].some((each) => each.hidden || getComputedStyle(each).display === 'none');
    })()`;
    assert.equal(await browser.evaluate(filter), true, 'its own script runs');
  });
});

const INTRUDER = { name: 'intruder', image: { type: 'oci', reference: BUSYBOX } };
/** What the attack below finds when nothing gets through. */
const NOTHING = {
  cookie: '',
  read: [],
  sockets: [],
  frames: [],
  leaked: null,
  opened: null,
  loaded: [],
};

/** Runs in the page: tries everything that pages can, and returns what came of it. */
function attackOn(api: string, victim: string, victimId: string): string {
  const call = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'sandbox.start',
    params: { sandbox: 'intruder', config: { image: BUSYBOX } },
  });
  return `(async () => {
    const [api, victim] = ${JSON.stringify([api, victim])};
    const bodies = ${JSON.stringify([JSON.stringify(INTRUDER), call])};
    const paths = ['/v1/sandboxes', '/v1/sandboxes?start=true', '/api/v1/rpc', '/legacy/api/v1/rpc', '/mcp'];
    const read = [];
    const tried = (url, options) => fetch(url, options).then(async (answer) => {
      if (answer.type !== 'opaque') read.push([url, answer.status, await answer.text()]);
    }, () => undefined);
    for (const path of [...paths, '/', '/docs', '/openapi.json', '/api/v1/health', '/metrics'])
      await tried(api + path, { credentials: 'include' });
    for (const path of paths) for (const body of bodies) {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json'])
        await tried(api + path, { method: 'POST', body, mode: type === 'application/json' ? 'cors' : 'no-cors', credentials: 'include', headers: { 'content-type': type } });
      navigator.sendBeacon(api + path, body);
      await new Promise((resolve) => {
        const frame = Object.assign(document.createElement('iframe'), { name: 'target' });
        document.body.append(frame);
        const form = Object.assign(document.createElement('form'), { method: 'POST', enctype: 'text/plain', action: api + path, target: 'target' });
        const half = body.length - 2;
        form.append(Object.assign(document.createElement('input'), { name: body.slice(0, half), value: body.slice(half) }));
        document.body.append(form);
        frame.addEventListener('load', () => { frame.remove(); form.remove(); resolve(); });
        form.submit();
        setTimeout(resolve, 3000);
      });
    }
    for (const verb of ['stop', 'restart', 'kill'])
      await tried(api + '/v1/sandboxes/${victimId}/' + verb, { method: 'POST', mode: 'no-cors', credentials: 'include' });
    const sockets = [];
    for (const path of ['/v1/sandboxes/${victimId}/agent', '/mcp', '/'])
      for (const base of [api, victim]) await new Promise((resolve) => {
        const socket = new WebSocket(base.replace('http', 'ws') + path);
        socket.onopen = () => { sockets.push(base + path); socket.close(); resolve(); };
        socket.onerror = () => resolve();
      });
    const frames = [];
    for (const url of [api + '/docs', api + '/', victim + '/']) await new Promise((resolve) => {
      const frame = Object.assign(document.createElement('iframe'), { src: url });
      frame.addEventListener('load', () => {
        try { if (frame.contentDocument?.title) frames.push(url); } catch {}
        frame.remove();
        resolve();
      });
      document.body.append(frame);
    });
    await tried(victim + '/secret.js', { credentials: 'include' });
    await new Promise((resolve) => {
      const script = Object.assign(document.createElement('script'), { src: victim + '/secret.js' });
      script.onload = script.onerror = () => resolve();
      document.head.append(script);
    });
    // It may set such cookies, as below; it must not see those that the server has set.
    const cookie = document.cookie.split('; ').filter((each) => !/=svc_preview_[xy]$/.test(each)).join('; ');
    document.cookie = 'svc_preview_token=svc_preview_x; path=/; domain=${DOMAIN}';
    document.cookie = 'svc_preview_token=svc_preview_y; path=/secret.js; domain=${DOMAIN}';
    // Tags send no Origin. What they load they cannot read, but whether it came they are told.
    const loaded = [];
    const ask = (tag, field, url) => new Promise((resolve) => {
      const element = Object.assign(document.createElement(tag), { rel: 'stylesheet', [field]: url });
      element.onload = () => resolve('load');
      element.onerror = () => resolve('error');
      setTimeout(resolve, 5000, 'nothing');
      document.body.append(element);
    });
    for (const [tag, field] of [['script', 'src'], ['img', 'src'], ['link', 'href'], ['object', 'data'], ['video', 'src']])
      for (const path of ['/v1/sandboxes/${victimId}', '/v1/sandboxes/none', '/assets/none', '/docs', '/openapi.json'])
        if (await ask(tag, field, api + path) === 'load') loaded.push([tag, path]);
    let opened = null;
    try { opened = window.open(victim)?.document.title ?? null; } catch {}
    return { cookie, read, sockets, frames, leaked: window.leaked ?? null, opened: opened === '' ? null : opened, loaded };
  })()`;
}
