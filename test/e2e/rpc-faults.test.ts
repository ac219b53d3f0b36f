import assert from 'node:assert/strict';
import { globSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { readStatus } from '@svc/server/admin';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
before(async () => {
  server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
});
after(() => server.destroy());

const start = (sandbox: string) => server.call('sandbox.start', { sandbox, config: { image: BUSYBOX } });

/** Waits until the records and the engine say the same, and compares them sandbox by sandbox. */
async function assertAgreement(): Promise<void> {
  const isSettled = (state: string) => state === 'running' || state === 'stopped' || state === 'failed';
  await waitUntil(
    async () => {
      const status = await readStatus(server.engine.folder);
      return status?.engine.isHealthy === true && status.sandboxes.every(({ state }) => isSettled(state));
    },
    { timeoutMs: 60_000, what: 'every sandbox is settled' },
  );
  const status = await readStatus(server.engine.folder);
  const running = status?.sandboxes.filter(({ state }) => state === 'running') ?? [];
  const views = await server.engine.client.listSandboxes();
  assert.equal(views.filter(({ state }) => state === 'running').length, running.length);
  for (const { name } of running) {
    const { error } = await server.call('sandbox.command.run', { sandbox: name, command: 'true' });
    assert.equal(error, undefined, name);
  }
}

test('kill -9 of the server during 50 calls: afterwards every sandbox is where the store says', async () => {
  await start('steady');
  const calls = Array.from({ length: 50 }, async (_, n) => {
    const name = `burst-${n % 10}`;
    if (n < 20) return await start(name);
    if (n < 30) return await server.call('sandbox.stop', { sandbox: name });
    // Still under way whenever the server is killed.
    return await server.call('sandbox.command.run', { sandbox: 'steady', command: 'sleep', args: ['1000'] });
  });
  const outcomes = Promise.allSettled(calls);
  await waitUntil(async () => (await server.engine.client.listSandboxes()).length >= 3);
  await server.kill();
  const lost = (await outcomes).filter(({ status }) => status === 'rejected').length;
  assert.ok(lost > 0, 'the server was killed too late to matter');
  await server.launch();
  await assertAgreement();
  const { error } = await server.call('sandbox.command.run', { sandbox: 'steady', command: 'true' });
  assert.equal(error, undefined, 'a sandbox that ran before runs on');
});

test('kill -9 of the web-facing process alone: the supervisor restarts it, and the records agree', async () => {
  await start('steady');
  const web = await server.webPid();
  assert.ok(web > 0);
  process.kill(web, 'SIGKILL');
  await waitUntil(async () => {
    const status = await readStatus(server.engine.folder).catch(() => undefined);
    server.url = status?.url ?? server.url;
    return status?.engine.isHealthy === true && (await server.webPid()) !== web;
  });
  await assertAgreement();
});

test('kill -9 of the engine: calls say that it is away, and sandboxes are running again when it is back', async () => {
  await start('steady');
  await server.engine.kill();
  await waitUntil(async () => (await fetch(`${server.url}/api/v1/health`)).status === 503);
  const body = { jsonrpc: '2.0', id: 1, params: { sandbox: 'steady', command: 'true' } };
  const answer = await server.post({ ...body, method: 'sandbox.command.run' });
  assert.equal(answer.status, 502);
  assert.partialDeepStrictEqual(answer.body.error, {
    code: -32_603,
    data: { code: 'orchestrator_unreachable' },
  });
  const isUnavailable = async () => {
    const status = await readStatus(server.engine.folder);
    const steady = status?.sandboxes.find(({ name }) => name === 'steady');
    return steady?.state === 'temporarily_unavailable';
  };
  await waitUntil(isUnavailable, { what: 'the sandbox is unavailable' });
  await server.engine.launch();
  await assertAgreement();
});

test('kill -9 of the engine during 50 calls: afterwards every sandbox is where the store says', async () => {
  const calls = Array.from({ length: 50 }, async (_, n) => {
    const name = `storm-${n % 10}`;
    return n % 3 === 2 ? await server.call('sandbox.stop', { sandbox: name }) : await start(name);
  });
  await waitUntil(async () =>
    (await server.engine.client.listSandboxes()).some(
      ({ state }) => state === 'starting' || state === 'running',
    ),
  );
  await server.engine.kill();
  for (const { error } of await Promise.all(calls)) {
    if (error !== undefined)
      assert.match(error.message, /^sandbox (?:start|stop) failed: .+|not found in configuration$/);
  }
  await server.engine.launch();
  await assertAgreement();
});

test('of all that was started, killed and removed nothing is left: no record and no cgroup', async () => {
  await server.stop();
  const folder = join(server.engine.folder, 'sandboxes');
  const handles = readdirSync(folder);
  assert.ok(handles.length > 0);
  for (const { id } of await server.engine.client.listSandboxes())
    await server.engine.client.removeSandbox(id);
  assert.deepEqual(readdirSync(folder), []);
  const names = `{${handles.join(',')},none}`;
  assert.deepEqual(globSync([`/sys/fs/cgroup/svc/${names}`, `/sys/fs/cgroup/*/svc/${names}`]), []);
});
