import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { TestPostgres } from '../../packages/server/src/testing/test-postgres.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SupervisedServer } from './supervised-server.ts';

const exec = promisify(execFile);
const SVC = resolve(import.meta.dirname, '../../svc');

let postgres: TestPostgres;
let databaseUrl: string;
let first: SupervisedServer;
let second: SupervisedServer;

before(async () => {
  postgres = await TestPostgres.start();
  databaseUrl = await postgres.createDatabase();
  first = await SupervisedServer.prepare();
  second = await SupervisedServer.prepare();
  await first.start('--database', databaseUrl);
  await first.importBusybox();
  const keys = ['secrets.key', 'signing.key'].map((name) => join(first.folder, 'server', name));
  await exec('install', ['-d', '-m', '700', join(second.folder, 'server')]);
  await exec('cp', ['-a', ...keys, join(second.folder, 'server')]);
  await second.start('--database', databaseUrl, '--engine-socket', join(first.folder, 'engine.sock'));
});

after(async () => {
  await second.clear();
  await first.clear();
  await postgres[Symbol.asyncDispose]();
});

test('a sandbox that is made through one server is used through the other', async () => {
  const made = await svc(first.port, 'run', '-d', '--name', 'shared', BUSYBOX);
  assert.deepEqual(made, { code: 0, stdout: 'shared\n', stderr: '' });
  const used = await svc(second.port, 'exec', 'shared', 'echo', 'here');
  assert.deepEqual(used, { code: 0, stdout: 'here\n', stderr: '' });
  for (const server of [first, second])
    assert.match(
      (await server.svc('orphan', 'ls')).text,
      /^no orphans: everything in \S+ has its row in the store\n$/,
    );
  assert.equal((await svc(second.port, 'rm', '-f', 'shared')).code, 0);
});

test('a server that is long about a create is asked again, and never for a sandbox that is not there yet', async (t) => {
  const held = await holdOrganizations();
  t.after(() => held[Symbol.asyncDispose]());
  await using way = await wayTo(second.port);
  const child = start(way.port, 'run', '--name', 'late', BUSYBOX, 'echo', 'ran');
  const ended = outcomeOf(child);
  await untilAskedAgain(way, child);
  await held[Symbol.asyncDispose]();
  assert.deepEqual(await ended, { code: 0, stdout: 'ran\n', stderr: '' });
  assert.equal((await svc(first.port, 'ps', '-aq')).stdout, 'late\n');
  assert.equal((await svc(first.port, 'rm', '-f', 'late')).code, 0);
});

test('an interrupt takes back what is not written down yet, and leaves a sandbox that was there', async (t) => {
  assert.equal((await svc(first.port, 'run', '-d', '--name', 'kept', BUSYBOX)).code, 0);
  const held = await holdOrganizations();
  t.after(() => held[Symbol.asyncDispose]());
  await using ways = new AsyncDisposableStack();
  const endings: ReturnType<typeof outcomeOf>[] = [];
  for (const name of ['kept', 'late']) {
    const way = ways.use(await wayTo(second.port));
    const child = start(way.port, 'run', '--name', name, BUSYBOX, 'true');
    await waitUntil(() => way.creates === 1, { timeoutMs: 60_000, what: 'it is asked for' });
    child.kill('SIGINT');
    const ended = outcomeOf(child);
    await untilAskedAgain(way, child);
    endings.push(ended);
  }
  await held[Symbol.asyncDispose]();
  for (const { code } of await Promise.all(endings)) assert.equal(code, 130);
  assert.equal((await svc(first.port, 'exec', 'kept', 'echo', 'here')).stdout, 'here\n');
  await waitUntil(async () => (await svc(first.port, 'ps', '-aq')).stdout === 'kept\n', {
    timeoutMs: 60_000,
    what: 'what was interrupted is gone',
  });
  assert.equal((await svc(first.port, 'rm', '-f', 'kept')).code, 0);
});

/** What a person types, at the server of this port. */
async function svc(port: number, ...words: readonly string[]) {
  return await outcomeOf(start(port, ...words));
}

function start(port: number, ...words: readonly string[]) {
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: first.folder,
    SVC_API_URL: `http://127.0.0.1:${port}`,
  };
  return spawn(SVC, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

async function outcomeOf(child: ReturnType<typeof start>) {
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Or until it has given up. */
async function untilAskedAgain(way: { readonly creates: number }, child: ReturnType<typeof start>) {
  const what = 'the server is asked again';
  await waitUntil(() => way.creates > 1 || child.exitCode !== null, { timeoutMs: 60_000, what });
}

/** Locks all organizations: changes of them wait until this ends. */
async function holdOrganizations(): Promise<AsyncDisposable> {
  return await postgres.hold(databaseUrl, 'select id from organizations');
}

/** Leads to the server of a port, and counts how often it was asked to make a sandbox. */
async function wayTo(port: number): Promise<AsyncDisposable & { readonly port: number; creates: number }> {
  const server = createServer((asked, answer) => {
    if (asked.method === 'POST' && asked.url?.startsWith('/v1/sandboxes?') === true) way.creates += 1;
    const { method, url: path, headers } = asked;
    const onward = request({ host: '127.0.0.1', port, method, path, headers });
    onward.on('response', (reply: IncomingMessage) => {
      answer.writeHead(reply.statusCode ?? 0, reply.headers);
      reply.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  server.on('upgrade', (asked, socket, head) => {
    const onward = request({ host: '127.0.0.1', port, path: asked.url, headers: asked.headers });
    onward.on('upgrade', (reply, other, first) => {
      const lines = reply.rawHeaders.map((word, at) => (at % 2 === 0 ? `${word}: ` : `${word}\r\n`)).join('');
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`);
      socket.write(first);
      other.write(head);
      socket.pipe(other).pipe(socket);
      socket.on('error', () => other.destroy());
      other.on('error', () => socket.destroy());
    });
    onward.on('error', () => socket.destroy());
    onward.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const way = {
    port: (server.address() as AddressInfo).port,
    creates: 0,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((done) => void server.close(done));
    },
  };
  return way;
}
