import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalToken } from '@svc/server/local';
import { importPython } from '../engine/interpreter-images.ts';
import {
  IN_A_BROWSER,
  OWNER,
  signIn,
  signInAddress,
  startDashboard,
} from '../dashboard/dashboard-fixture.ts';

/**
 * Results of code and texts of lesser members in the dashboard of the owner: they run no script, make the browser send no request,
 * and leave the page usable.
 */
const TABLE = 'application/vnd.svc.table+json';
/** Sends results of any shape in the driver's name. */
const FORGE = `import json, os
def forge(**data):
    data = json.dumps({"data": {kind.replace("_", "/", 1): form for kind, form in data.items()}}).encode()
    results = display.__globals__["results"]
    for at in range(0, len(data), 4000):
        part, is_last = data[at:at + 4000], at + 4000 >= len(data)
        os.write(1, results.mark + (len(part) | (0 if is_last else 0x80000000)).to_bytes(4, "big") + part)
`;
/** PNGs of some kilobytes: one says that it has 3.6 thousand million pixels, one has 400 million. */
const LARGE_PNGS = `import base64, struct, zlib
def png(side, rows):
    parts = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(rows * (1 + side // 8)))), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts]
    return base64.b64encode(b"\\x89PNG\\r\\n\\x1a\\n" + b"".join(chunks)).decode()
forge(image_png=png(60000, 1))
forge(image_png=png(20000, 20000))`;
const DOT_GIF = 'R0lGODlhAQABAIAAAAAAAP///yH5BAQBAAAALAAAAAABAAEAAAICRAEAOw==';
/** An SVG of 1.2 kB that draws 10^9 squares. */
const SVG_BOMB = `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"><rect id="l0" width="9" height="9"/>${Array.from(
  { length: 9 },
  (_, level) => `<g id="l${level + 1}">${`<use href="#l${level}"/>`.repeat(10)}</g>`,
).join('')}</svg>`;
const LONG_LINES =
  'import time\nfor _ in range(60): print("x" * 60000)\nprint("the end \\u202E", flush=True)\ntime.sleep(1e6)';
/** What turns letters round, hides them or controls a terminal. */
const MARKS = 'a\u202Egpj\u2066\u200B\u009B8m\u001B[8m';
const INVISIBLE = String.raw`/[\u0000-\u0008\u000E-\u001F\u007F-\u009F\u061C\u200B\u200E\u200F\u202A-\u202E\u2066-\u2069]/`;
/** All that a page shows or says of itself. */
const TEXTS = `[document.title, document.body.textContent, ...[...document.querySelectorAll('[title], [aria-label]')].map((each) => each.title + each.ariaLabel)].join(' ')`;
/** Functions that report a script that runs in the page. */
const TRAPS = `if (location.hostname === '127.0.0.1') {
window.confirm = () => true;
window.open = (url) => { window.broken = 'opened ' + url; return null; };
Object.defineProperty(navigator, 'clipboard', { value: { writeText: async () => { window.broken = 'copied'; } } });
}`;

test('results of a sandbox run no script in the dashboard', IN_A_BROWSER, async (t) => {
  const elsewhere = await startElsewhere(t);
  const dashboard = await startDashboard(t, { others: [elsewhere.url] });
  const { page, server, complaints } = dashboard;
  await importPython(server.engine);
  await page.addInitScript({ content: TRAPS });
  await signIn(dashboard);
  const { secret } = await createLocalToken({ dataFolder: server.engine.folder }, OWNER, { name: 'test' });
  const client = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  const markup = markupFor(elsewhere.url);
  const sandbox = await Sandbox.create({
    client,
    name: 'web',
    image: 'python',
    labels: { team: MARKS + markup.html },
    spec: { runtime: { cmd: ['python3', '-c', LONG_LINES] } },
  });
  const home = `/orgs/acme/sandboxes/${sandbox.id}`;
  const open = async (path: string) => await page.goto(`${server.url}${path}`);
  let known = 0;
  /** Without a title: one that changes while the page loads. */
  const checkUnharmed = async (title: string | null = 'web · svc') => {
    const found = await page.evaluate(
      `[window.broken ?? null, ${title === null ? 'null' : 'document.title'}, !!document.querySelector('nav'), ${INVISIBLE}.exec(${TEXTS})]`,
    );
    const reports = complaints.slice(known);
    known = complaints.length;
    assert.deepEqual([found, elsewhere.asked.splice(0), reports], [[null, title, true, null], [], []]);
  };
  const run = async (code: string) => {
    await open(`${home}/code`);
    const field = page.getByLabel('Code', { exact: true });
    await field.fill(`${FORGE}\n${code}\nprint("over")`);
    await field.press('Control+Enter');
    await page.getByText('Finished.').waitFor();
    await checkUnharmed();
  };
  const count = async (selector: string) =>
    Number(await page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`));

  await t.test('markup, pictures and JSON that are forged run nothing and load nothing', async () => {
    const forms = {
      text_html: markup.html,
      text_markdown: `[x](javascript:top.broken=1) ![x](${elsewhere.url}/markdown) ${markup.html}`,
      text_latex: `\\href{javascript:top.broken=1}{x} \\includegraphics{${elsewhere.url}/latex}`,
      application_javascript: 'top.broken = 1',
      'image_svg+xml': markup.svg,
      image_png: Buffer.from(markup.svg).toString('base64'),
      image_jpeg: Buffer.from(markup.html).toString('base64'),
      application_json: JSON.parse(
        '{"__proto__": {"then": 1}, "constructor": 5, "toString": 1, "n": 1e308}',
      ) as object,
      [TABLE.replace('/', '_')]: {
        columns: [{ name: markup.html, type: markup.html }],
        rows: [[markup.html]],
        row_count: 1,
        truncated: false,
      },
    };
    await run(
      `for kind, form in json.loads(${JSON.stringify(JSON.stringify(forms))}).items(): forge(**{kind: form})`,
    );
    assert.equal(await count('.result'), Object.keys(forms).length, 'all of them are shown');
    await page.getByText('the browser cannot read it as image/png').waitFor();
    await page.getByText('the browser cannot read it as image/jpeg').waitFor();
    assert.equal(await count('.result img'), 0, 'markup is not drawn, also under the type of a picture');
    assert.equal(
      await count('.result :is(script, iframe, object, a, form, style, link, svg:not(button svg))'),
      0,
    );
  });

  await t.test('forms that are not what their type says are left out, and the page stays', async () => {
    const tables = [
      '5',
      'None',
      '{"columns": [{"name": {}, "type": ""}], "rows": [], "row_count": 1, "truncated": False}',
    ];
    await run(
      [...tables.map((table) => `forge(**{"${TABLE}": ${table}})`), 'forge(application_pdf="A")'].join('\n'),
    );
    assert.equal(await page.getByText(/^Left out: .*\(invalid\)/).count(), tables.length + 1);
  });

  await t.test('of large results only as much is drawn as a page can hold', async () => {
    await run(
      `forge(**{"${TABLE}": {"columns": [{"name": "n", "type": "integer"}] * 200, "rows": [[1] * 200] * 1000, "row_count": 1000, "truncated": False}})`,
    );
    await page.getByText('The first 200 of 1000 rows, and 50 of 200 columns.').waitFor();
    assert.equal(await count('.result td'), 200 * 50);
    await run('deep = [1] * 100000\nfor _ in range(50): deep = [deep]\nforge(application_json=deep)');
    assert.equal(await page.evaluate(`document.querySelector('.result pre').textContent.length`), 200_000);
    await run('import sys\nfor _ in range(6000): os.write(1, b"o"); os.write(2, b"e"); os.sched_yield()');
    assert.ok((await count('.code-output > pre')) <= 1001);
  });

  await t.test('an SVG is text and a download, however harmless or hostile', async () => {
    const harmless = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>';
    const svgs = [harmless, markup.svg, SVG_BOMB];
    await run(
      `for svg in json.loads(${JSON.stringify(JSON.stringify(svgs))}): forge(**{"image_svg+xml": svg})`,
    );
    assert.equal(await count('.result :is(img, svg:not(button svg), iframe, object, embed)'), 0);
    for (const [index, svg] of svgs.entries()) {
      assert.equal(await page.locator('.result pre').nth(index).innerText(), svg);
      const downloaded = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Save the SVG' }).nth(index).click();
      const download = await downloaded;
      assert.equal(download.suggestedFilename(), `result-${index + 1}.svg`);
      assert.equal(await readFile(await download.path(), 'utf8'), svg);
      await checkUnharmed();
    }
  });

  await t.test('a picture with too many pixels is a download, and others are drawn', async () => {
    await run(LARGE_PNGS);
    // Chromium itself refuses the first.
    await page.getByText('the browser cannot read it as image/png').waitFor();
    await page.getByText('This picture of 20,000 × 20,000 pixels is not drawn').waitFor();
    assert.equal(await count('.result img'), 0);
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the picture' }).first().click();
    assert.equal((await downloaded).suggestedFilename(), 'result-1.png');

    const drawn = (await page.evaluate(`['png', 'jpeg', 'webp'].map((kind) => {
      const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
      canvas.getContext('2d').fillRect(9, 9, 9, 9);
      return ['image_' + kind, canvas.toDataURL('image/' + kind).replace(/^data:.*,/, '')];
    })`)) as readonly (readonly string[])[];
    const pictures = JSON.stringify([...drawn, ['image_gif', DOT_GIF]]);
    await run(`for kind, form in json.loads(${JSON.stringify(pictures)}): forge(**{kind: form})`);
    await page.locator('.result img').nth(3).waitFor();
    const widths = `Promise.all([...document.querySelectorAll('.result img')].map(async (image) => { await image.decode(); return image.naturalWidth; }))`;
    assert.deepEqual(await page.evaluate(widths), [64, 64, 64, 1]);
  });

  await t.test('sequences for a terminal neither lead, copy, name nor stop anything', async () => {
    const counted = ['L', 'M', 'S', 'T', 'I', 'Z', 'b'].map((final) => `x\\033[2147483647${final}`);
    const others = ['\\033]0;named\\007', '\\033]52;c;aGVsbG8=\\007', '\\033[8;9;9t'];
    const link = `\\033]8;;${elsewhere.url}/link\\033\\\\a-link\\033]8;;\\033\\\\`;
    await open(`${home}/terminal`);
    const screen = page.locator('.xterm-rows');
    await screen.filter({ hasText: '#' }).waitFor();
    for (const [index, text] of [...counted, ...others].entries()) {
      await page.keyboard.type(`printf '${text}\\nali''ve-${index}\\n'\n`);
      await screen.filter({ hasText: `alive-${index}` }).waitFor();
    }
    await page.keyboard.type(`printf '${link}\\n'\n`);
    // What takes the pointer lies in front of what is seen.
    await page
      .locator('.xterm-rows span')
      .filter({ hasText: /^a-link$/ })
      .first()
      .click({ force: true });
    await checkUnharmed();
  });

  await t.test('a folder of very many files is shown a part at a time', async () => {
    await sandbox.exec('python3', [
      '-c',
      'import os\nos.mkdir("/many")\nfor n in range(20000): open(f"/many/{n}", "w").close()\nopen("/many/!\\u202Egpj.exe", "w").close()',
    ]);
    await open(`${home}/files?path=/many`);
    const more = page.getByRole('button', { name: 'Show more' });
    await more.waitFor();
    assert.equal(await count('tbody tr'), 200);
    await more.click();
    await page.locator('tbody tr').nth(399).waitFor();
    assert.equal(await count('tbody tr'), 400);
    const name = page.locator('.file-name').first();
    assert.equal(await name.innerText(), '!<U+202E>gpj.exe', 'it is not shown as a picture');
    await page.getByRole('button', { name: 'Delete !<U+202E>gpj.exe' }).click();
    await page.getByRole('heading', { name: 'Delete !<U+202E>gpj.exe?' }).waitFor();
    await checkUnharmed();
  });

  await t.test('of very long lines the end is shown', async () => {
    await open(`${home}/logs`);
    await page.locator('.log li').filter({ hasText: 'the end' }).waitFor();
    const length = Number(await page.evaluate(`document.querySelector('.log').textContent.length`));
    assert.ok(length > 500_000 && length < 1_100_000, String(length));
    await checkUnharmed();
  });

  await t.test('names, addresses and payloads that members chose are text on every page', async () => {
    const made = await Promise.all([
      client.call('apiKeys.create', { body: { name: markup.html.slice(0, 60) } }),
      client.call('webhooks.create', {
        body: {
          url: 'https://example.com/?<img/src=x/onerror=top.broken=1>',
          description: MARKS + markup.html.slice(0, 150),
          event_types: ['*'],
        },
      }),
      client.call('processes.start', {
        params: { sandbox_id: sandbox.id },
        body: { cmd: 'sleep', args: ['1000', MARKS + markup.html], name: 'sleeper' },
      }),
      client.call('processes.start', {
        params: { sandbox_id: sandbox.id },
        body: { cmd: 'sleep', args: ['1000', MARKS.repeat(1000)], name: 'long' },
      }),
      client.call('volumes.create', { body: { name: 'data', labels: { team: MARKS + markup.html } } }),
    ]);
    assert.equal(made.length, 5);
    const pages = ' /sandboxes /volumes /secrets /webhooks /keys /audit /usage /members /settings'.split(' ');
    for (const path of [
      ...pages.map((each) => `/orgs/acme${each}`),
      home,
      `${home}/events`,
      `${home}/network`,
      `${home}/processes`,
    ]) {
      await open(path);
      await page.locator('main h1').first().waitFor();
      await checkUnharmed(null);
    }
    await page.getByText('a<U+202E>gpj<U+2066><U+200B><U+009B>8m').first().waitFor();
    await checkUnharmed();
  });

  await t.test(
    'a page of a preview gets nothing of the session of who opens it, and plants none',
    async () => {
      const own = server.url.replace('127.0.0.1', 'localhost');
      await page.goto((await signInAddress(dashboard)).replace(server.url, own));
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Later' }).click();
      const served = { cmd: 'python3', args: ['-m', 'http.server', '8000', '-d', '/tmp'] };
      await client.call('processes.start', { params: { sandbox_id: sandbox.id }, body: served });
      const port = { params: { sandbox_id: sandbox.id }, body: { port: 8000 } };
      const { url } = await client.call('previews.open', port);
      const isServed = async () => {
        await page.goto(url ?? '');
        return (await page.content()).includes('Directory listing');
      };
      await waitUntil(isServed, { what: 'it is served' });
      const found = await page.evaluate(attackOnSession(own));
      assert.deepEqual(found, { cookie: '', opened: [true, 0], heard: [] });
      const volumes = await client.call('volumes.list', {});
      assert.ok(!volumes.some(({ name }) => name === 'intruder'), 'nothing was made');
      await page.goto(`${own}/account`);
      await page.getByText(OWNER).first().waitFor();
    },
  );

  await page.goto(`${elsewhere.url}/asked`);
  assert.deepEqual(elsewhere.asked.slice(0, 1), ['/asked'], 'it was in reach');
});

/** Notes what browsers ask it for. */
async function startElsewhere(t: TestContext): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, { 'access-control-allow-origin': '*' }).end('top.broken = 1');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, asked };
}

/** All the ways that markup has to run something or to load something. */
function markupFor(url: string): { readonly html: string; readonly svg: string } {
  const html = `<img src=x onerror="top.broken=1"><script src="${url}/script"></script>
<meta http-equiv=refresh content="0;url=${url}/refresh"><base href="${url}/base/"><iframe srcdoc="<script>top.broken=1</script>"></iframe>
<object data="${url}/object"></object><embed src="${url}/embed"><style>@import url(${url}/import); * { background: url(${url}/background) }</style>
<link rel=prefetch href="${url}/prefetch"><link rel=dns-prefetch href="${url}/dns"><form action="${url}/form"><button autofocus onfocus="top.broken=1">x</button></form>`;
  const inside = (name: string, rest: string) => `<${name} xmlns="http://www.w3.org/1999/xhtml" ${rest}/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60" onload="top.broken=1"><script href="${url}/svg-script"/>
<script>fetch("${url}/svg-fetch"); top.broken = 1</script><style>@import url(${url}/svg-import); rect { fill: url(${url}/svg-fill) } @font-face { font-family: x; src: url(${url}/svg-font) }</style>
<image href="${url}/svg-image" width="9" height="9"/><use href="${url}/svg-use#a"/><image><set attributeName="href" to="${url}/svg-set"/></image>
<foreignObject width="50" height="50">${inside('iframe', `src="${url}/svg-frame"`)}${inside('img', `src="${url}/svg-img" onerror="top.broken=1"`)}</foreignObject>
<a href="javascript:top.broken=1"><rect width="50" height="50"/><animate attributeName="href" to="javascript:top.broken=1" dur="1s"/></a><text font-family="x">x</text></svg>`;
  return { html, svg };
}

/** Runs in a page of a preview: what it sees of a session at this address, and whether it can act in it or replace it. */
function attackOnSession(own: string): string {
  return `(async () => {
    const own = ${JSON.stringify(own)};
    const [path, body] = ['/v1/orgs/acme/volumes', '{"name":"intruder"}'];
    for (const type of ['text/plain', 'application/json'])
      await fetch(own + path, { method: 'POST', body, credentials: 'include', mode: type === 'text/plain' ? 'no-cors' : 'cors', headers: { 'content-type': type } }).catch(() => undefined);
    const heard = [];
    addEventListener('message', ({ data }) => heard.push(data));
    const popup = window.open(own + '/account');
    await new Promise((resolve) => setTimeout(resolve, 3000));
    popup.postMessage({ type: 'hello' }, '*');
    const opened = [popup.closed, popup.length];
    const cookie = document.cookie;
    for (const name of ['__Host-svc_session', 'svc_session'])
      for (const rest of ['', '; domain=localhost', '; domain=localhost; path=/v1', '; secure; domain=localhost'])
        document.cookie = name + '=planted; path=/' + rest;
    await navigator.serviceWorker?.register(own + '/sw.js').catch(() => undefined);
    return { cookie, opened, heard };
  })()`;
}
