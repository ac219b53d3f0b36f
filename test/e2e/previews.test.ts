import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { WebSocket } from 'ws';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { openChannel } from '../../packages/server/src/testing/channel.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

interface Reply {
  readonly status: number;
  readonly body: {
    readonly id: string;
    readonly status: string;
    readonly token: string;
    readonly url: string;
    readonly error?: { readonly code: string; readonly message: string };
  };
}

const DOMAIN = 'preview.test';

describe('previews and published ports on the real engine', { concurrency: false }, () => {
  let server: TestServer;
  let sandboxId = '';
  let token = '';
  let hostPort = 0;
  let isServing = false;
  const host = `8000-web-shop.${DOMAIN}`;

  before(async () => {
    server = await TestServer.start({
      args: ['--dev', '--preview-domain', DOMAIN],
      engineArgs: ['--isolation', 'container'],
    });
    hostPort = await freePort();
    const created = await create('shop', 'web-shop', [{ guest_port: 8000, host_port: hostPort }]);
    assert.deepEqual([created.status, created.body.status], [200, 'running'], JSON.stringify(created.body));
    sandboxId = created.body.id;
    const preview = await rest('POST', `/sandboxes/${sandboxId}/previews`, { port: 8000 });
    assert.equal(preview.status, 200, JSON.stringify(preview.body));
    ({ token } = preview.body);
    assert.equal(preview.body.url, `http://${host}:${new URL(server.url).port}/`);
  });
  after(() => server.destroy());

  const rest = async (method: string, path: string, payload?: unknown): Promise<Reply> => {
    const response = await fetch(`${server.url}/v1${path}`, {
      method,
      headers: payload === undefined ? {} : { 'content-type': 'application/json' },
      ...(payload === undefined ? {} : { body: JSON.stringify(payload) }),
    });
    return { status: response.status, body: (await response.json()) as Reply['body'] };
  };
  const create = (name: string, slug: string, ports: readonly object[]) =>
    rest('POST', '/sandboxes?start=true&wait_for=running&wait_timeout=60', {
      name,
      slug,
      image: { type: 'oci', reference: BUSYBOX },
      network: { ports },
    });
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const asked = request(`${server.url}${path}`, {
      headers: { host, 'x-svc-preview-token': token, ...headers },
      agent: false,
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const body = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>));
    return { status: response.statusCode ?? 0, body };
  };
  /** What serves is started once and outlives every channel and the server: it never has to wait for one that ends. */
  const serve = async (t: Parameters<typeof openChannel>[0], name: string, content: Uint8Array) => {
    const { channel } = await openChannel(t, { url: server.url, sandboxId });
    await channel.files.mkdir('/www');
    await channel.files.writeFile(`/www/${name}`, content);
    if (isServing) return;
    const httpd = { cmd: 'httpd', args: ['-f', '-p', '8000', '-h', '/www'] };
    const started = await rest('POST', `/sandboxes/${sandboxId}/processes`, httpd);
    assert.equal(started.status, 200, JSON.stringify(started.body));
    isServing = true;
  };

  test('a port without a service is a 502, and with one its pages are served whole', async (t) => {
    assert.equal((await ask('/')).status, 502);
    const content = randomBytes(8 * 1024 * 1024);
    await serve(t, 'big', content);
    await waitUntil(async () => (await ask('/big')).status === 200, {
      what: 'the service answers',
    });
    const { body } = await ask('/big');
    assert.ok(body.equals(content));
    assert.equal((await ask('/big', { 'x-svc-preview-token': 'svc_preview_x' })).status, 401);
  });

  test('a WebSocket handshake that the service refuses comes back as its answer', async (t) => {
    await serve(t, 'page', Buffer.from('page'));
    await waitUntil(async () => (await ask('/page')).status === 200, {
      what: 'it answers',
    });
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/none`, {
      headers: { host, 'x-svc-preview-token': token },
    });
    socket.on('error', () => undefined);
    const [, answer] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    assert.equal(answer.statusCode, 404);
    socket.terminate();
  });

  test('a published port carries bytes in both directions, also after a restart of the server', async (t) => {
    const echo = async () => {
      const socket = connect({ port: hostPort, host: '127.0.0.1', allowHalfOpen: true });
      const failed = new Promise<string>((resolve) => void socket.once('error', () => resolve('')));
      const read = async () => {
        const chunks = await Array.fromAsync(socket as AsyncIterable<Buffer>);
        return Buffer.concat(chunks).toString();
      };
      socket.end('GET /small HTTP/1.0\r\n\r\n');
      return await Promise.race([read().catch(() => ''), failed]);
    };
    const check = async () => {
      await serve(t, 'small', Buffer.from('it is here'));
      await waitUntil(async () => (await echo()).endsWith('it is here'), {
        what: 'the published port answers',
      });
    };
    await check();
    assert.equal(await server.stop(), 0);
    await server.launch();
    await check();
  });

  test('a port that is published already is named in a 409', async () => {
    const { status, body } = await create('second', 'web-second', [{ guest_port: 1, host_port: hostPort }]);
    assert.deepEqual([status, body.error?.code], [409, 'invalid_sandbox_config']);
    assert.match(body.error?.message ?? '', new RegExp(String(hostPort)));
  });

  test('the SDK makes previews, lists and revokes them', async () => {
    const client = new Client({ apiUrl: server.url, apiKey: '' });
    const sandbox = await Sandbox.connect(sandboxId, { client });
    const made = await sandbox.ports.preview(9000, { expiresInSecs: 60 });
    assert.match(made.url, /^http:\/\/9000-web-shop\./);
    assert.ok(made.token !== null && made.token.endsWith(made.prefix));
    const ids = async () => (await sandbox.ports.list()).map(({ id }) => id);
    assert.ok((await ids()).includes(made.id));
    await sandbox.ports.revoke(made.id);
    assert.ok(!(await ids()).includes(made.id));
  });
});
