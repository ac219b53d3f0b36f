import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize, resolve } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../e2e/start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { openBrowser } from '../clients/open-browser.ts';
import { installSdk, NODE_22 } from './install-sdk.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

const SEEN = {
  exec: 'hello\n',
  code: 3,
  input: ['one', 'two'],
  bytes: 3_000_000,
  file: 'grüße',
  names: ['ü.txt'],
  terminal: true,
  missing: 'not_found',
  timeout: 'exec_timeout',
  aborted: 'aborted',
  volume: [1, 2, 255],
  listed: [true],
  removed: 'sandbox_not_found',
};

suite('the built SDK', { timeout: 300_000 }, () => {
  let folder = '';
  let pages: Server;
  let server: TestServer;
  let settings: { apiUrl: string; apiKey: string; image: string };

  before(async () => {
    folder = await installSdk();
    await cp(join(ROOT, 'test/clients/use-sdk.mjs'), join(folder, 'use-sdk.mjs'));
    pages = await servePages(folder);
    server = await TestServer.start({
      args: ['--cors-origin', originOf(pages)],
      engineArgs: ['--isolation', 'container'],
    });
    const { key } = await createKey(server.engine.folder, { namespace: 'default' });
    settings = { apiUrl: server.url, apiKey: key, image: BUSYBOX };
  });
  after(async () => {
    await server?.destroy();
    close(pages);
    await rm(folder, { recursive: true, force: true });
  });

  test('works in Node 22', async () => {
    const program = `
      import * as sdk from '@svc/sdk';
      import { uploadTree } from '@svc/sdk/node';
      import { useSdk } from './use-sdk.mjs';
      const seen = await useSdk(sdk, JSON.parse(process.env.SETTINGS));
      console.log(JSON.stringify({ version: process.version, trees: typeof uploadTree, seen }));
    `;
    await writeFile(join(folder, 'program.mjs'), program);
    const { stdout } = await run(NODE_22, ['program.mjs'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], SETTINGS: JSON.stringify(settings) },
    });
    const { version, trees, seen } = JSON.parse(stdout) as { version: string; trees: string; seen: unknown };
    assert.match(version, /^v22\./);
    assert.equal(trees, 'function');
    assert.deepEqual(seen, SEEN);
  });

  test('works in a browser, from a page whose origin the server allows', async (t) => {
    const page = await openBrowser(t, originOf(pages), [server.url]);
    const seen = await page.evaluate(`(async () => {
      const { useSdk } = await import('/use-sdk.mjs');
      return await useSdk(await import('@svc/sdk'), ${JSON.stringify(settings)});
    })()`);
    assert.deepEqual(seen, SEEN);
  });

  test('is kept out of a page whose origin the server does not allow', async (t) => {
    const pages = await servePages(folder);
    t.after(() => close(pages));
    const page = await openBrowser(t, originOf(pages), [server.url]);
    const seen = await page.evaluate(`(async () => {
      const { Client, Sandbox } = await import('@svc/sdk');
      const { apiUrl, apiKey } = ${JSON.stringify(settings)};
      const client = new Client({ apiUrl, apiKey });
      // Nor what a page may load from anywhere else without reading it. That the server can be reached is seen above.
      const blind = await fetch(apiUrl, { mode: 'no-cors' }).then(({ type }) => type, ({ name }) => name);
      try {
        for await (const { name } of Sandbox.list({ client })) return [blind, name];
        return [blind, 'listed'];
      } catch (error) {
        return [blind, error.code];
      }
    })()`);
    assert.deepEqual(seen, ['TypeError', 'connection_failed']);
  });

  test('comes with types that a strict program compiles against', async () => {
    const program = `
      import { Sandbox, SvcError } from '@svc/sdk';
      export async function main(): Promise<number> {
        const sandbox = await Sandbox.create({ image: 'x' });
        const result = await sandbox.exec('true');
        // @ts-expect-error: there is no such option
        await Sandbox.create({ imagine: 'x' });
        return SvcError.is(result, 'timeout') ? 1 : result.code;
      }
    `;
    await writeFile(join(folder, 'typed.mts'), program);
    const flags = '--noEmit --strict --target es2024 --module nodenext --skipLibCheck --types node';
    const roots = ['--typeRoots', join(ROOT, 'node_modules/@types')];
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    await run(process.execPath, [compiler, ...flags.split(' '), ...roots, 'typed.mts'], { cwd: folder });
  });
});

async function servePages(folder: string): Promise<Server> {
  const pages = createServer((request, response) => void servePage(folder, request.url ?? '/', response));
  pages.listen(0, '127.0.0.1');
  await once(pages, 'listening');
  return pages;
}

function originOf(pages: Server): string {
  return `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
}

function close(pages: Server): void {
  pages.closeAllConnections();
  pages.close();
}

const IMPORTS = {
  '@svc/sdk': '/node_modules/@svc/sdk/sdk/index.js',
  '#platform': '/node_modules/@svc/sdk/sdk/platform/browser-platform.js',
  cborg: '/node_modules/cborg/cborg.js',
};
const PAGE = `<!doctype html><meta charset="utf-8"><title>SDK</title>
<script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`;
const TYPES: Readonly<Record<string, string>> = { '.js': 'text/javascript', '.mjs': 'text/javascript' };

async function servePage(
  folder: string,
  url: string,
  response: { writeHead(status: number, headers?: object): { end(body?: string | Buffer): void } },
): Promise<void> {
  if (url === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  try {
    const content = await readFile(join(folder, normalize(url)));
    response
      .writeHead(200, { 'content-type': TYPES[extname(url)] ?? 'application/octet-stream' })
      .end(content);
  } catch {
    response.writeHead(404).end();
  }
}
