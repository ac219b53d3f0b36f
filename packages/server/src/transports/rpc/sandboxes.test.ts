import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { EventEmitter, on, once } from 'node:events';
import { test } from 'node:test';
import type { SandboxReport } from '@svc/contract/orchestrator';
import { waitUntil } from '@svc/contract/testing';
import { FakeOrchestrator } from '../../testing/fake-orchestrator.ts';
import { startTestServer, type TestServer } from '../../testing/test-server.ts';
import { findSandbox } from '../../store/sandboxes.ts';
import { listRuns } from '../../store/runs.ts';

const start = (server: TestServer, config?: object, sandbox = 'a') =>
  server.call('sandbox.start', { sandbox, ...(config === undefined ? {} : { config }) });
const stop = (server: TestServer, sandbox = 'a') => server.call('sandbox.stop', { sandbox });
const only = async (server: TestServer) => {
  const [report, ...more] = await server.orchestrator.list();
  assert.deepEqual(more, []);
  return report;
};

test('start makes a sandbox run and says so', async (t) => {
  const server = await startTestServer(t);
  const answer = await start(server, { image: 'python' });
  assert.deepEqual(answer, { jsonrpc: '2.0', result: 'Sandbox a started successfully', id: 'test' });
  assert.equal((await only(server))?.state, 'running');
});

test('a start with the same configuration leaves a network alone that was changed since', async (t) => {
  const server = await startTestServer(t);
  const config = { image: 'python', memory: 256 };
  await start(server, config);
  const { id } = (await only(server)) ?? { id: '' };
  const policy = { default_egress: 'deny' as const, rules: [] };
  const changed = await server.rest('PATCH', `/sandboxes/${id}/network`, { body: { policy } });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  await stop(server);
  await start(server, config);
  const report = await only(server);
  assert.deepEqual([report?.id, report?.state, report?.network], [id, 'running', { policy }]);
});

test('start without an image and nothing stored is -32603 with the name', async (t) => {
  const server = await startTestServer(t);
  for (const config of [undefined, {}, { image: null, memory: null }]) {
    const { error } = await start(server, config, 'ghost');
    assert.equal(error?.code, -32_603);
    assert.equal(error.message, "Sandbox 'ghost' not found in configuration");
    assert.equal((error.data as { code: string }).code, 'sandbox_not_found');
  }
});

test('a field of config without an image is refused by name: half a configuration is none', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'python', memory: 128 });
  await stop(server);
  const fields = { memory: 256, cpus: 1, envs: ['A=1'], workdir: '/', volumes: [], ports: [], shell: 'sh' };
  for (const [field, value] of Object.entries({ ...fields, scripts: {} })) {
    const { error } = await start(server, { [field]: value });
    assert.equal(error?.code, -32_602, field);
    assert.match(error.message, new RegExp(`config\\.${field} goes with config\\.image`));
    assert.equal((error.data as { field: string }).field, `config.${field}`);
  }
  assert.equal((await start(server, {})).error, undefined);
  const { id = '' } = (await only(server)) ?? {};
  assert.equal(server.orchestrator.requestOf(id).spec.resources?.memory_mib, 128);
});

test('a stopped sandbox starts again from what is stored, with its disk', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'python', memory: 128 });
  const before = await only(server);
  await stop(server);
  assert.equal((await start(server)).result, 'Sandbox a started successfully');
  assert.equal((await only(server))?.id, before?.id);
  const record = await findSandbox(server.database, 'default', 'a');
  assert.equal(record?.spec.resources?.memory_mib, 128);
});

test('starting a running sandbox again with the same config changes nothing', async (t) => {
  const server = await startTestServer(t);
  const config = { image: 'python', envs: ['A=1'], memory: 512 };
  await start(server, config);
  const before = await only(server);
  assert.equal((await start(server, config)).result, 'Sandbox a started successfully');
  assert.equal(
    (await start(server, { envs: ['A=1'], image: 'python', cpus: 1 })).result,
    'Sandbox a started successfully',
  );
  assert.equal((await start(server)).result, 'Sandbox a started successfully');
  for (const image of ['python:latest', 'docker.io/library/python'])
    assert.equal((await start(server, { ...config, image })).result, 'Sandbox a started successfully');
  assert.deepEqual(await only(server), before);
});

test('starting a running sandbox with another config is invalid_state_transition and changes nothing', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'python' });
  const before = await only(server);
  for (const config of [
    { image: 'node' },
    { image: 'python', memory: 64 },
    { image: 'python', ports: ['8080'] },
  ]) {
    const { error } = await start(server, config);
    assert.equal(error?.code, -32_603);
    assert.match(
      error.message,
      /^sandbox start failed: Sandbox 'a' is running with another configuration; stop it first$/,
    );
    assert.equal((error.data as { code: string }).code, 'invalid_state_transition');
  }
  assert.deepEqual(await only(server), before);
});

test('a stopped sandbox takes another config, and the old one is gone', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'python' });
  const before = await only(server);
  await stop(server);
  await start(server, { image: 'node', workdir: '/tmp', envs: ['A=b=c'], cpus: 2 });
  const after = await only(server);
  assert.notEqual(after?.id, before?.id);
  const record = await findSandbox(server.database, 'default', 'a');
  assert.deepEqual(record?.spec.env, [{ key: 'A', value: 'b=c' }]);
  assert.equal(record?.spec.runtime?.workdir, '/tmp');
});

test('a start whose sandbox another call has started meanwhile has succeeded', async (t) => {
  const orchestrator = new LookedAt();
  const server = await startTestServer(t, { orchestrator });
  await start(server, { image: 'python' });
  await stop(server);
  // While the old one is removed, the reconciler finds the new one wanted and starts it.
  orchestrator.beforeRemove = async () => {
    orchestrator.looks.emit('look');
    await waitUntil(async () => (await findSandbox(server.database, 'default', 'a'))?.observed === 'running');
  };
  const { result, error } = await start(server, { image: 'node' });
  assert.equal(result, 'Sandbox a started successfully', error?.message);
  assert.equal((await findSandbox(server.database, 'default', 'a'))?.observed, 'running');
  assert.equal((await only(server))?.state, 'running');
});

/** Observes all sandboxes on request. */
class LookedAt extends FakeOrchestrator {
  readonly looks = new EventEmitter();
  beforeRemove = async () => await Promise.resolve();

  override async remove(id: string): Promise<Pick<SandboxReport, 'sequence'>> {
    await this.beforeRemove();
    return await super.remove(id);
  }

  override async *changes(signal: AbortSignal): AsyncGenerator<null> {
    const looks = on(this.looks, 'look', { signal });
    for (;;) {
      yield null;
      await looks.next();
    }
  }
}

test('undocumented fields of the original server reach the sandbox', async (t) => {
  const server = await startTestServer(t);
  await start(server, {
    image: 'x',
    volumes: ['/srv:/data:ro', 'rel:/w'],
    shell: '/bin/sh',
    scripts: { hi: 'echo hi' },
  });
  const record = await findSandbox(server.database, 'default', 'a');
  assert.deepEqual(record?.spec.mounts, [
    { type: 'bind', host: '/srv', guest: '/data', options: { readonly: true } },
    { type: 'bind', host: 'rel', guest: '/w', options: { readonly: false } },
  ]);
  assert.deepEqual(record?.spec.runtime, { workdir: null, shell: '/bin/sh', scripts: { hi: 'echo hi' } });
});

test('a start that fails says why, is written down, and can be tried again', async (t) => {
  const server = await startTestServer(t);
  const { error } = await start(server, { image: 'missing' });
  assert.equal(error?.message, 'sandbox start failed: image missing is not known; import it first');
  assert.equal((error.data as { code: string }).code, 'image_not_found');
  const record = await findSandbox(server.database, 'default', 'a');
  assert.deepEqual([record?.desired, record?.observed], ['stopped', 'failed']);
  assert.equal((await start(server, { image: 'python' })).result, 'Sandbox a started successfully');
});

test('stop ends the run, keeps the sandbox, and may be repeated', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'python' });
  assert.deepEqual(await stop(server), {
    jsonrpc: '2.0',
    result: 'Sandbox a stopped successfully',
    id: 'test',
  });
  assert.equal((await stop(server)).result, 'Sandbox a stopped successfully');
  const report = await only(server);
  assert.equal(report?.state, 'stopped');
  const [run, ...more] = await listRuns(server.database, report.id);
  assert.deepEqual(
    [run?.started_at, run?.ended_at, run?.end_reason],
    [report.startedAt, report.endedAt, 'stopped'],
  );
  assert.deepEqual(more, []);
});

test('stop of an unknown sandbox is -32603 with the name', async (t) => {
  const { error } = await stop(await startTestServer(t), 'ghost');
  assert.equal(error?.code, -32_603);
  assert.equal(error.message, "Sandbox 'ghost' not found in configuration");
});

test('starts of one sandbox at the same time make one', async (t) => {
  const server = await startTestServer(t);
  const answers = await Promise.all(Array.from({ length: 10 }, () => start(server, { image: 'python' })));
  for (const { result } of answers) assert.equal(result, 'Sandbox a started successfully');
  await only(server);
});

test('metrics show every sandbox of the namespace, running or not', async (t) => {
  const server = await startTestServer(t);
  await start(server, { image: 'x' }, 'one');
  await start(server, { image: 'x' }, 'two');
  await stop(server, 'two');
  const { result } = await server.call('sandbox.metrics.get', { namespace: 'default' });
  assert.deepEqual(result, {
    sandboxes: [
      { namespace: 'default', name: 'one', running: true, cpu_usage: 1.5, memory_usage: 3, disk_usage: 4096 },
      {
        namespace: 'default',
        name: 'two',
        running: false,
        cpu_usage: null,
        memory_usage: null,
        disk_usage: null,
      },
    ],
  });
  const one = await server.call('sandbox.metrics.get', { sandbox: 'two' });
  assert.deepEqual((one.result as unknown as { sandboxes: unknown[] }).sandboxes.length, 1);
  const ghost = await server.call('sandbox.metrics.get', { sandbox: 'ghost' });
  assert.equal(ghost.error?.message, "Sandbox 'ghost' not found in configuration");
});

test('a sandbox that ends on its own is shown as ended, with the reason', async (t) => {
  const server = await startTestServer(t);
  await waitUntil(() => server.health.current.isHealthy);
  await start(server, { image: 'x' });
  const { id } = (await only(server)) ?? { id: '' };
  server.orchestrator.end(id, 'oom', 'it used more memory than the 512 MiB it may');
  await waitUntil(async () => (await findSandbox(server.database, 'default', 'a'))?.observed === 'failed');
  const { error } = await server.call('sandbox.command.run', { sandbox: 'a', command: 'true' });
  assert.equal(
    error?.message,
    "command execution failed: Sandbox 'a' is failed (it used more memory than the 512 MiB it may); start it with sandbox.start, config.image and a larger config.memory",
  );
  assert.equal((await start(server)).result, 'Sandbox a started successfully');
});

test('a port in use fails the start and is named', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const { port } = taken.address() as { port: number };
  const server = await startTestServer(t);
  const { error } = await start(server, { image: 'x', ports: [`${port}:80`] });
  assert.equal(
    error?.message,
    `sandbox start failed: Port ${port} of 127.0.0.1 is in use; publish another host_port`,
  );
  assert.equal((await server.orchestrator.list()).length, 0);
});
