import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { EXIT, findServer, readStatus } from '@svc/server/admin';
import { createKey } from '@svc/server/keys';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

let server: TestServer;
before(async () => {
  server = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
});
after(() => server.destroy());

const metrics = (key: string) =>
  server.post(
    { jsonrpc: '2.0', method: 'sandbox.metrics.get', params: { namespace: '*' }, id: 1 },
    { authorization: `Bearer ${key}` },
  );

test('the web-facing process is not root and cannot become it; its folder is its own', async () => {
  const status = await readFile(`/proc/${await server.webPid()}/status`, 'utf8');
  assert.match(status, /^Uid:\t64555\t64555\t64555\t64555$/m);
  assert.match(status, /^Gid:\t64555\t64555\t64555\t64555$/m);
  assert.match(status, /^Groups:\t64555 ?$/m);
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(status, /^CapPrm:\t0+$/m);
  const folder = await stat(join(server.engine.folder, 'server'));
  assert.deepEqual([folder.uid, folder.mode & 0o777], [64_555, 0o700]);
});

test('a second server on the same folder refuses, and the first one serves on', async () => {
  const second = server.spawn();
  const [code] = (await once(second, 'exit')) as [number];
  assert.equal(code, EXIT.alreadyRunning);
  assert.match(await server.log(), /a server runs already on/);
  assert.equal(await findServer(server.engine.folder), server.pid);
  assert.equal((await fetch(`${server.url}/api/v1/health`)).status, 200);
});

test('a key made while the server runs works at once, and the status says that keys are asked for', async () => {
  const { key } = await createKey(server.engine.folder, { expire: '1h' });
  assert.equal((await metrics(key)).status, 200);
  assert.equal((await metrics('svc_nonsense')).status, 401);
  const status = await readStatus(server.engine.folder);
  assert.equal(status?.isDev, false);
  assert.ok((status?.keys ?? 0) >= 1);
});

test('neither keys nor the signing key get into the log or a command line', async () => {
  const { key } = await createKey(server.engine.folder, {});
  await metrics(key);
  const signingKey = await readFile(join(server.engine.folder, 'server', 'signing.key'));
  const log = await server.log();
  assert.ok(!log.includes(key));
  for (const form of ['hex', 'base64', 'base64url'] as const)
    assert.ok(!log.includes(signingKey.toString(form)));
});

test('SIGTERM ends it cleanly, sandboxes run on, and the next server finds them', async () => {
  const { key } = await createKey(server.engine.folder, {});
  const headers = { authorization: `Bearer ${key}` };
  await server.call('sandbox.start', { sandbox: 'steady', config: { image: BUSYBOX } }, headers);
  assert.equal(await server.stop(), EXIT.stopped);
  assert.equal(await findServer(server.engine.folder), undefined);
  assert.equal(await readStatus(server.engine.folder), undefined);
  assert.equal((await server.engine.client.listSandboxes())[0]?.state, 'running');
  await server.launch();
  const run = { sandbox: 'steady', command: 'echo', args: ['still here'] };
  const { result } = await server.call('sandbox.command.run', run, headers);
  assert.partialDeepStrictEqual(result, { output: 'still here\n' });
});

test('--reset-key makes every earlier key worthless', async () => {
  const { key } = await createKey(server.engine.folder, {});
  await server.stop();
  const resetting = server.with('--reset-key');
  await resetting.launch();
  server = resetting;
  assert.equal((await metrics(key)).status, 401);
  const { key: fresh } = await createKey(server.engine.folder, {});
  assert.equal((await metrics(fresh)).status, 200);
});
