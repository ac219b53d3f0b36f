import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const SERVICE_UID = 64_555;
const OWNER = 'ann@example.com';
const PASSWORD = 'correct-horse-battery-staple';

interface Reply {
  readonly status: number;
  /** Whichever of these the answer has. */
  readonly body: {
    readonly id?: string;
    readonly slug?: string;
    readonly role?: string;
    readonly key?: string;
    readonly token?: string;
    readonly data?: readonly unknown[];
  };
}

let server: TestServer;
let token: string;
before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  await svc('org', 'create', 'acme', '--owner', OWNER);
  token = await svc('token', 'create', '--user', OWNER);
});
after(() => server.destroy());

/** As the operator of this machine, while the server runs as another user. */
async function svc(...words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(SVC, ['--path', server.engine.folder, ...words], {
    timeout: 100_000,
  });
  return stdout.trim();
}

async function rest(method: string, path: string, key: string, body?: unknown): Promise<Reply> {
  const response = await fetch(`${server.url}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Reply['body'] };
}

/** What is on the disk of the server, its log included. */
async function everythingWritten(): Promise<string> {
  const folder = join(server.engine.folder, 'server');
  const names = (await readdir(folder)).filter((name) => name.startsWith('store.db'));
  const files = await Promise.all(names.map((name) => readFile(join(folder, name), 'latin1')));
  return [...files, await server.log()].join('\n');
}

test('keys made on the command line work at once, and the server can still write', async () => {
  const key = await svc('apikey', 'create', '--org', 'acme');
  assert.equal((await rest('GET', '/me/org', key)).body.slug, 'acme');
  assert.equal((await rest('GET', '/orgs/acme', token)).body.role, 'owner');
  const made = await rest('POST', '/orgs/acme/api-keys', token, { name: 'made by the server' });
  assert.equal(made.status, 200);
  const listed = await svc('apikey', 'ls', '--org', 'acme');
  assert.ok(listed.includes('made by the server'));
  await svc('apikey', 'revoke', '--org', 'acme', made.body.id ?? '');
  assert.equal((await rest('GET', '/me/org', made.body.key ?? '')).status, 401);
  const { uid } = await stat(join(server.engine.folder, 'server', 'store.db'));
  assert.equal(uid, SERVICE_UID);
});

test('a key of an organization runs code in its namespace, and in no other', async () => {
  const key = await svc('apikey', 'create', '--org', 'acme');
  const headers = { authorization: `Bearer ${key}` };
  const start = { sandbox: 'work', namespace: 'acme', config: { image: BUSYBOX } };
  const started = await server.call('sandbox.start', start, headers);
  assert.equal(started.result, 'Sandbox work started successfully', JSON.stringify(started.error));
  const run = { sandbox: 'work', namespace: 'acme', command: 'echo', args: ['hi'] };
  const { result } = await server.call('sandbox.command.run', run, headers);
  assert.equal((result as { output: string }).output.trim(), 'hi');
  const other = await server.call('sandbox.start', { ...start, namespace: 'default' }, headers);
  assert.equal(other.error?.message, "Access denied to namespace 'default'");
  await server.call('sandbox.stop', { sandbox: 'work', namespace: 'acme' }, headers);
});

test('deleting an organization removes its sandboxes and volumes from the engine', async () => {
  await svc('org', 'create', 'gone', '--owner', OWNER);
  const key = await svc('apikey', 'create', '--org', 'gone');
  const { engine } = server;
  const before = {
    sandboxes: await idsOf(engine.client.listSandboxes()),
    volumes: await idsOf(engine.client.volumes.listVolumes()),
  };
  const volume = await rest('POST', '/volumes', key, { name: 'data', capacity_gib: 1 });
  assert.equal(volume.status, 200, JSON.stringify(volume.body));
  const start = { sandbox: 'a', namespace: 'gone', config: { image: BUSYBOX } };
  const started = await server.call('sandbox.start', start, { authorization: `Bearer ${key}` });
  assert.equal(started.error, undefined);
  assert.notDeepEqual(await idsOf(engine.client.listSandboxes()), before.sandboxes);
  assert.equal((await rest('DELETE', '/orgs/gone', token, { confirm: 'gone' })).status, 200);
  assert.equal((await rest('GET', '/me/org', key)).status, 401);
  await waitUntil(
    async () =>
      String(await idsOf(engine.client.listSandboxes())) === String(before.sandboxes) &&
      String(await idsOf(engine.client.volumes.listVolumes())) === String(before.volumes),
    { timeoutMs: 60_000, what: 'sandboxes and volumes are removed' },
  );
  const again = await rest('POST', '/orgs', token, { name: 'Gone', slug: 'gone' });
  assert.equal(again.status, 200);
  const sandboxes = await rest('GET', '/orgs/gone/sandboxes', token);
  assert.deepEqual(sandboxes.body.data, []);
});

test('no secret is in the database, the log or an answer', async () => {
  const key = await svc('apikey', 'create', '--org', 'acme');
  const made = await rest('POST', '/users/me/pats', token, { name: 'x' });
  const invite = await rest('POST', '/orgs/acme/invites', token, { email: 'bob@example.com' });
  const body = { registry_host: 'ghcr.io', username: 'ann', password: PASSWORD };
  const put = await rest('PUT', '/orgs/acme/registries', token, body);
  assert.equal(put.status, 200);
  const answers = [
    put,
    await rest('GET', '/orgs/acme/registries', token),
    await rest('GET', '/orgs/acme/api-keys', token),
    await rest('GET', '/users/me/pats', token),
    await rest('GET', '/orgs/acme/invites', token),
    await rest('GET', '/orgs/acme/events?limit=100', token),
    await rest('POST', '/orgs/acme/registries', token, body),
  ];
  const seen = JSON.stringify(answers) + (await everythingWritten());
  const keyFile = await readFile(join(server.engine.folder, 'server', 'secrets.key'), 'utf8');
  const sealing = keyFile.split('\n').findLast((line) => line !== '') ?? '';
  for (const secret of [key, token, made.body.token ?? '', invite.body.token ?? '', PASSWORD, sealing]) {
    assert.ok(secret.length > 20);
    assert.ok(!seen.includes(secret), 'a secret was found in what is kept');
  }
});

test('secrets are sealed anew while the server runs, and the server seals with the new key', async () => {
  const rotated = JSON.parse(await svc('-o', 'json', 'server', 'rotate-secrets')) as { resealed: number };
  assert.ok(rotated.resealed > 0);
  const body = { registry_host: 'quay.io', username: 'ann', password: PASSWORD };
  assert.equal((await rest('PUT', '/orgs/acme/registries', token, body)).status, 200);
  const after = JSON.parse(await svc('-o', 'json', 'server', 'rotate-secrets', '--reseal-only')) as object;
  assert.deepEqual(after, { resealed: 0 });
  const file = await stat(join(server.engine.folder, 'server', 'secrets.key'));
  assert.deepEqual([file.uid, file.mode & 0o777], [SERVICE_UID, 0o600]);
});

test('a new signing key ends signed keys, API keys and tokens, over REST and over JSON-RPC', async () => {
  const signed = (await svc('server', 'keygen', '--namespace', 'acme')).trim();
  const key = await svc('apikey', 'create', '--org', 'acme');
  assert.equal((await rest('GET', '/me/org', signed)).status, 200);
  await server.stop();
  const usual = server;
  server = server.with('--reset-key');
  await server.launch();
  assert.equal((await rest('GET', '/me/org', signed)).status, 401);
  assert.equal((await rest('GET', '/me/org', key)).status, 401);
  assert.equal((await rest('GET', '/users/me', token)).status, 401);
  const called = await server.call(
    'sandbox.metrics.get',
    { namespace: 'acme' },
    { authorization: `Bearer ${key}` },
  );
  assert.equal(called.error?.code, -32002);
  await server.stop();
  server = usual;
  await server.launch();
  token = await svc('token', 'create', '--user', OWNER);
  assert.equal((await rest('GET', '/users/me', token)).status, 200);
});

test('a server whose secrets key others may read does not start, and says what to do', async () => {
  await server.stop();
  const path = join(server.engine.folder, 'server', 'secrets.key');
  await chmod(path, 0o644);
  const [code] = (await once(server.spawn(), 'exit')) as [number];
  assert.equal(code, 1);
  assert.ok((await server.log()).includes(`chmod 600 ${path}`));
  await chmod(path, 0o600);
  await server.launch();
  assert.equal((await rest('GET', '/users/me', token)).status, 200);
});

async function idsOf(list: Promise<readonly { readonly id: string }[]>): Promise<readonly string[]> {
  return (await list).map(({ id }) => id).toSorted();
}
