import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Sandbox, SvcError, type Client, type DetachedOutput } from '@svc/sdk';
import { TestServer } from '../e2e/start-server.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { clientOf } from './real-server.ts';

/** A server that keeps its port when it is started again, as servers do. */
async function startedServer(t: { after(work: () => Promise<void>): void }): Promise<{
  readonly server: TestServer;
  readonly client: Client;
  readonly restart: () => Promise<void>;
}> {
  const first = await TestServer.start({ args: [], engineArgs: ['--isolation', 'container'] });
  let server = first;
  t.after(async () => {
    await server.stop();
    await first.destroy();
  });
  const client = await clientOf(first);
  return {
    server: first,
    client,
    restart: async () => {
      await server.kill();
      server = first.with('--port', new URL(client.apiUrl).port);
      await server.launch();
    },
  };
}

test('after a restart of the server the same objects go on, and calls in progress fail', async (t) => {
  const { client, restart } = await startedServer(t);
  const sandbox = await Sandbox.create({ client, name: 'box', image: BUSYBOX });
  await sandbox.files.write('/tmp/kept', 'here');
  await sandbox.files.write('/tmp/kept-not', '');
  const late = sandbox.exec('sleep', ['1000']).catch((error: unknown) => error);
  const command = await sandbox.commands.start('sleep', ['1000'], { stdout: 'ignore', stderr: 'ignore' });
  const waiting = command.wait().catch((error: unknown) => error);
  const watch = await sandbox.files.watch('/tmp', { signal: AbortSignal.timeout(120_000) });
  const changes = watch[Symbol.asyncIterator]();
  const first = changes.next();
  await restart();
  for (const failure of await Promise.all([late, waiting])) {
    assert.ok(SvcError.is(failure, 'connection_failed'), String(failure));
  }
  // It is watched again when the gap is reported.
  assert.deepEqual((await first).value, { type: 'overflow' });
  await sandbox.files.remove('/tmp/kept-not');
  assert.deepEqual((await changes.next()).value, { type: 'removed', path: 'kept-not', kind: 'file' });
  watch.close();
  assert.equal(await sandbox.files.readText('/tmp/kept'), 'here');
  assert.equal((await sandbox.exec('true')).code, 0);
  assert.equal((await sandbox.refresh()).status, 'running');
});

test('while the server is away calls wait for it a little, then say that it cannot be reached', async (t) => {
  const { client, server } = await startedServer(t);
  const sandbox = await Sandbox.create({ client, name: 'box', image: BUSYBOX });
  await server.kill();
  const failures = await Promise.all([
    sandbox.exec('true').catch((error: unknown) => error),
    sandbox.refresh().catch((error: unknown) => error),
    sandbox.files.readText('/x', { timeoutMs: 50 }).catch((error: unknown) => error),
  ]);
  const codes = failures.map((failure) => (SvcError.is(failure) ? failure.code : String(failure)));
  assert.deepEqual(codes, ['connection_failed', 'connection_failed', 'timeout']);
});

test('a detached process outlives its client and the server, and none of its output is lost or repeated', async (t) => {
  const { client, restart } = await startedServer(t);
  const sandbox = await Sandbox.create({ client, name: 'box', image: BUSYBOX });
  const script =
    'i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); if [ $i = 100 ]; then until [ -e /tmp/go ]; do sleep 0.05; done; fi; done';
  const name = `job-${randomBytes(3).toString('hex')}`;
  const started = await sandbox.commands.startDetached('sh', ['-c', script], { name });
  const pieces: DetachedOutput[] = [];
  const text = () =>
    pieces.map((piece) => (piece.kind === 'data' ? Buffer.from(piece.data).toString() : '!')).join('');
  const reading = (async () => {
    for await (const piece of started.output()) pieces.push(piece);
  })();
  await waitUntil(() => text().includes('line 99\n'), { what: 'the first half' });
  await restart();
  await sandbox.files.write('/tmp/go', '');
  const found = await sandbox.commands.connect(name);
  assert.equal(found.id, started.id);
  const exit = await found.wait({ timeoutMs: 60_000 });
  assert.deepEqual([exit.code, exit.reason], [0, 'exit']);
  await reading;
  assert.equal(text(), Array.from({ length: 200 }, (_, index) => `line ${index}\n`).join(''));
  const listed = await Array.fromAsync(sandbox.commands.list({ status: 'exited' }));
  assert.deepEqual(
    listed.map((process) => process.name),
    [name],
  );
  await found.remove();
  await assert.rejects(sandbox.commands.connect(name), (error) => SvcError.is(error, 'process_not_found'));
});

test('a detached process takes input and signals', async (t) => {
  const { client } = await startedServer(t);
  const sandbox = await Sandbox.create({ client, name: 'box', image: BUSYBOX });
  const cat = await sandbox.commands.startDetached('cat', [], { hasStdin: true });
  await cat.write('to and fro');
  await cat.closeStdin();
  const pieces = await Array.fromAsync(cat.output());
  const data = pieces
    .map((piece) => (piece.kind === 'data' ? Buffer.from(piece.data).toString() : ''))
    .join('');
  assert.equal(data, 'to and fro');
  const sleeper = await sandbox.commands.startDetached('sleep', ['1000']);
  await sleeper.kill();
  const exit = await sleeper.wait({ timeoutMs: 60_000 });
  assert.deepEqual([exit.code, exit.signal], [null, 'SIGKILL']);
});
