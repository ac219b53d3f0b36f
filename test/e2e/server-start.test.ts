import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { EXIT, readStatus, SERVER_MAIN } from '@svc/server/admin';

const OTHER_USER = { uid: 64_556, gid: 64_556 };
const NO_ENGINE = '/nowhere/engine.sock';
const CHECKOUT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

interface Started {
  readonly child: ChildProcess;
  /** What it has logged so far. */
  readonly log: () => string;
  /** Its exit code, when all it logged has been read. */
  readonly closed: Promise<unknown>;
}

/** Servers of the test that runs. */
const running: Started[] = [];

/** It is removed after the test, when no server writes into it any more. */
async function makeDataFolder(t: TestContext, owner?: typeof OTHER_USER): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-start-'));
  t.after(async () => {
    for (const { child, closed } of running.splice(0)) {
      child.kill('SIGTERM');
      await closed;
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  await chmod(folder, 0o711);
  if (owner !== undefined) await chown(folder, owner.uid, owner.gid);
  return folder;
}

/** Starts the server without an engine, in a folder of `makeDataFolder`; it ends with the test. */
function start(
  folder: string,
  options: {
    readonly args?: readonly string[];
    readonly user?: typeof OTHER_USER;
    readonly env?: object;
    /** Where the program is, and the Node that runs it. */
    readonly checkout?: string;
  } = {},
): Started {
  const args = ['--path', folder, '--port', '0', '--run-as', '64555:64555', ...(options.args ?? [])];
  const inCheckout = (file: string): string => join(options.checkout ?? CHECKOUT, relative(CHECKOUT, file));
  const child = spawn(inCheckout(process.execPath), [inCheckout(SERVER_MAIN), ...args], {
    ...options.user,
    env: { PATH: process.env['PATH'], ...options.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = once(child, 'close').then(([code]: unknown[]) => code);
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const started = { child, log: () => text, closed };
  running.push(started);
  return started;
}

/** This checkout, wherever it is, in a folder that all users may enter, or root alone. */
async function showCheckout(t: TestContext, to: 'everybody' | 'root'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-checkout-'));
  await chmod(folder, to === 'everybody' ? 0o711 : 0o700);
  const checkout = join(folder, 'checkout');
  await mkdir(checkout);
  await run('mount', ['--bind', CHECKOUT, checkout]);
  t.after(async () => {
    await run('umount', ['--lazy', checkout]);
    // SAFETY: not recursive, so that nothing of the checkout goes should it still be mounted.
    await rmdir(checkout);
    await rmdir(folder);
  });
  return checkout;
}

async function untilItListens(folder: string): Promise<string> {
  let url = '';
  await waitUntil(async () => {
    url = (await readStatus(folder).catch(() => undefined))?.url ?? '';
    return url !== '';
  });
  return url;
}

test('a user who is not root gets a server of their own, and a list of what it lacks', async (t) => {
  const folder = await makeDataFolder(t, OTHER_USER);
  start(folder, { user: OTHER_USER, args: ['--dev'], checkout: await showCheckout(t, 'everybody') });
  const url = await untilItListens(folder);
  await waitUntil(async () => {
    const response = await fetch(`${url}/api/v1/health`);
    const { message } = (await response.json()) as { message: string };
    return response.status === 503 && /engine cannot be reached; start it with/.test(message);
  });
});

test('a data folder that the user may not write is named, with what to do', async (t) => {
  const folder = await makeDataFolder(t);
  const checkout = await showCheckout(t, 'everybody');
  const started = start(join(folder, 'inside'), { user: OTHER_USER, checkout });
  assert.equal(await started.closed, EXIT.failed);
  assert.match(started.log(), /inside cannot be written; run as root, or choose another folder with --path/);
});

test('a data folder that the service user cannot get to is refused with the folder that is in its way', async (t) => {
  const folder = await makeDataFolder(t);
  await chmod(folder, 0o700);
  const started = start(join(folder, 'one/two'), { args: ['--engine-socket', NO_ENGINE] });
  assert.equal(await started.closed, EXIT.failed);
  const expected = `may not enter ${folder}; let it through with \`chmod o+x ${folder}\`, or choose another folder with --path`;
  assert.ok(started.log().includes(expected), started.log());
  assert.doesNotMatch(started.log(), /EACCES/);
});

test('bad options end the start with a code of their own, and all of them are named', async (t) => {
  const folder = await makeDataFolder(t);
  const started = start(folder, { args: ['--log-level', 'loud', '--dev', '--host', '0.0.0.0'] });
  assert.equal(await started.closed, EXIT.usage);
  assert.match(started.log(), /--log-level/);
  assert.match(started.log(), /--allow-remote-dev/);
});

test('an address that is taken ends the start with a code of its own', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const { port } = taken.address() as { port: number };
  const folder = await makeDataFolder(t);
  const started = start(folder, { args: ['--port', String(port), '--engine-socket', NO_ENGINE] });
  assert.equal(await started.closed, EXIT.addressInUse);
});

test('proxies of the environment do not come between the server and its engine or its clients', async (t) => {
  const folder = await makeDataFolder(t);
  const proxy = 'http://127.0.0.1:1';
  const env = {
    http_proxy: proxy,
    https_proxy: proxy,
    HTTP_PROXY: proxy,
    ALL_PROXY: proxy,
    NODE_USE_ENV_PROXY: '1',
  };
  start(folder, { env, args: ['--dev', '--engine-socket', NO_ENGINE] });
  const url = await untilItListens(folder);
  const response = await fetch(`${url}/api/v1/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', method: 'sandbox.metrics.get', params: {}, id: 1 }),
  });
  assert.deepEqual(await response.json(), { jsonrpc: '2.0', result: { sandboxes: [] }, id: 1 });
});

test('a kill of the supervisor ends the web-facing process too, and the next server can start', async (t) => {
  const folder = await makeDataFolder(t);
  const args = ['--dev', '--engine-socket', NO_ENGINE];
  const { child } = start(folder, { args });
  await untilItListens(folder);
  child.kill('SIGKILL');
  // A server that is ending may close the connection.
  const isGone = async () => (await readStatus(folder).catch(() => 'ending')) === undefined;
  await waitUntil(isGone, { what: 'the server has ended' });
  start(folder, { args });
  await untilItListens(folder);
});

test('a program that the service user cannot read serves all the same, MCP included', async (t) => {
  const folder = await makeDataFolder(t);
  const checkout = await showCheckout(t, 'root');
  const { log } = start(folder, { checkout, args: ['--dev', '--engine-socket', NO_ENGINE] });
  const url = await untilItListens(folder);
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    }),
  });
  assert.equal(response.status, 200, log());
  assert.match(await response.text(), /"protocolVersion"/);
});
