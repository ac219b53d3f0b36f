import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { createLocalApiKey } from '@svc/server/local';
import { connectClient } from '../../packages/server/src/testing/mcp-client.ts';
import { openBrowser } from '../clients/open-browser.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const exec = promisify(execFile);

let server: TestServer;
before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  await importPython(server.engine);
});
after(() => server.destroy());

/** The lines to copy, by their name. */
async function snippets(url: string): Promise<ReadonlyMap<string, string>> {
  const html = await (await fetch(`${url}/start`)).text();
  const found = html.matchAll(/<pre id="([\w-]+)"[^>]*>([^<]*)<\/pre>/g);
  return new Map([...found].map(([, id = '', text = '']) => [id, unescapeHtml(text)]));
}

function unescapeHtml(text: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };
  return text.replaceAll(/&(\w+);/g, (whole, name: string) => entities[name] ?? whole);
}

/** Each is typed as it stands, into a shell that has nothing but the key. */
async function tryAll(t: TestContext, url: string, key: string | undefined): Promise<void> {
  const lines = await snippets(url);
  const env = {
    PATH: `${ROOT}:${process.env['PATH'] ?? ''}`,
    HOME: '/nonexistent',
    ...(key === undefined ? {} : { SVC_API_KEY: key }),
  };
  const shell = async (id: string) =>
    (await exec('bash', ['-c', lines.get(id) ?? 'false'], { env, timeout: 100_000 })).stdout;
  assert.equal(await shell('cli'), '42\n');
  const args = ['--input-type=module-typescript', '--eval', lines.get('sdk') ?? ''];
  const sdk = await exec(process.execPath, args, {
    cwd: ROOT,
    env: { ...env, SVC_API_URL: url },
    timeout: 100_000,
  });
  assert.equal(sdk.stdout, '42\n\n');
  const listed = JSON.parse(await shell('rest')) as { data?: unknown };
  assert.ok(Array.isArray(listed.data), JSON.stringify(listed));
  assert.match(await shell('rpc'), /"Sandbox demo started successfully"[^]*"output":"45\\n"/);

  const config = (lines.get('mcp') ?? '').replace('${SVC_API_KEY}', key ?? '');
  const { mcpServers } = JSON.parse(config) as {
    mcpServers: { svc: { url: string; headers?: Record<string, string> } };
  };
  const { url: mcpUrl, headers = {} } = mcpServers.svc;
  const { client } = await connectClient(t, mcpUrl.replace(/\/mcp$/, ''), headers);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.ok(names.includes('sandbox_start') && names.includes('sandbox_run_code'), names.join(' '));
  assert.equal(lines.get('mcp-stdio'), `svc mcp --url ${url}`);
  assert.deepEqual(
    [...lines.keys()].filter((id) => !TRIED.has(id)),
    [],
  );
}

const TRIED = new Set(['key', 'variable', 'cli', 'sdk', 'rest', 'rpc', 'mcp', 'mcp-stdio']);

test('every line of the page works as it stands on a server with keys', async (t) => {
  const { secret } = await createLocalApiKey({ dataFolder: server.engine.folder }, undefined, { name: 'x' });
  await tryAll(t, server.url, secret);
  assert.equal((await snippets(server.url)).get('key'), 'sudo svc apikey create');
});

test('in a browser it has its style, loads nothing, and fits a phone', async (t) => {
  const page = await openBrowser(t, `${server.url}/start`);
  const look = async () =>
    await page.evaluate(`({
      title: document.title,
      margin: getComputedStyle(document.body).margin,
      loaded: performance.getEntriesByType('resource').map(({ name }) => name).filter((name) => !name.startsWith('data:')),
      overflow: document.documentElement.scrollWidth - innerWidth,
    })`);
  const expected = { title: 'svc', margin: '0px', loaded: [], overflow: 0 };
  assert.deepEqual(await look(), expected);
  await page.setViewportSize({ width: 360, height: 740 });
  assert.deepEqual(await look(), expected);
});

test('every line of the page works as it stands on a server that asks for no key', async (t) => {
  await server.stop();
  const open = server.with('--dev');
  await open.launch();
  t.after(() => open.stop());
  await tryAll(t, open.url, undefined);
  assert.ok(!(await snippets(open.url)).has('key'));
});
