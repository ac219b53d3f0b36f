import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { DetachedAgent } from '../../testing/detached-agent.ts';
import { insertProcess, findOpenRun, type ProcessRecord } from '../../store/processes.ts';
import { startTestServer } from '../../testing/test-server.ts';

const SPEC = { image: { type: 'oci', reference: 'x' } };
const LONG_AGO = '2020-01-01T00:00:00.000Z';

/** A sandbox whose agent runs nothing: what its processes do is for the test to say. */
async function withSandbox(t: TestContext) {
  const server = await startTestServer(t);
  const agent = new DetachedAgent();
  server.orchestrator.createAgent = () => agent.connect();
  const body = { name: 'box', ...SPEC };
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const id: string = made.body.id;
  const path = `/sandboxes/${id}/processes`;
  const start = async (more: object = {}) => {
    const reply = await server.rest('POST', path, { body: { cmd: 'job', ...more } });
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
    return reply.body;
  };
  const get = async (process: string) => await server.rest('GET', `${path}/${process}`);
  return { server, agent, id, path, start, get };
}

async function record(
  { server, id }: Awaited<ReturnType<typeof withSandbox>>,
  change: Partial<ProcessRecord>,
): Promise<ProcessRecord> {
  const run = await findOpenRun(server.database, id);
  assert.ok(run !== undefined);
  const process: ProcessRecord = {
    id: crypto.randomUUID(),
    organizationId: run.organization_id,
    sandboxId: id,
    runId: run.id,
    name: null,
    pid: null,
    command: ['x'],
    isTty: false,
    startedAt: new Date().toISOString(),
    endedAt: null,
    exit: null,
    stdoutBytes: 0,
    stderrBytes: 0,
    ...change,
  };
  await insertProcess(server.database, process);
  return process;
}

for (const [runEnd, expected] of [
  ['idle_timeout', 'idle'],
  ['max_duration', 'max_duration'],
  ['oom', 'oom'],
  ['host_restart', 'host_lost'],
  ['crashed', 'host_lost'],
  ['exited', 'killed_by'],
] as const) {
  test(`a process whose sandbox ended by ${runEnd} ended by ${expected}`, async (t) => {
    const { server, id, start, get } = await withSandbox(t);
    const process = await start();
    server.orchestrator.end(id, runEnd, 'it ended');
    await waitUntil(async () => (await get(process.id)).body.status === 'exited');
    const { exit, ended_at: endedAt } = (await get(process.id)).body;
    assert.deepEqual([exit.reason, exit.code, typeof endedAt], [expected, null, 'string']);
    assert.ok(exit.message.length > 0);
  });
}

test('the end of a process names the caller who stopped its sandbox', async (t) => {
  const { server, id, start, get } = await withSandbox(t);
  const process = await start();
  assert.equal((await server.rest('POST', `/sandboxes/${id}/stop`)).status, 200);
  await waitUntil(async () => (await get(process.id)).body.status === 'exited');
  const { exit } = (await get(process.id)).body;
  assert.equal(exit.reason, 'killed_by');
  assert.equal(exit.message, `its sandbox was stopped by ${exit.killed_by}`);
  const refused = await server.rest('POST', `/sandboxes/${id}/processes`, { body: { cmd: 'x' } });
  assert.deepEqual([refused.status, refused.body.error.code], [409, 'sandbox_not_running']);
});

test('an end that the sandbox has seen stays when the sandbox ends', async (t) => {
  const { server, agent, id, start, get } = await withSandbox(t);
  const process = await start();
  agent.end(process.id, { code: 4, reason: 'exit' });
  // Noticed in the background without a request, before the sandbox forgets it.
  await waitUntil(async () => {
    const row = await server.database.selectFrom('processes').select('exit').executeTakeFirst();
    return row?.exit !== null;
  }, 'a look at the sandbox');
  server.orchestrator.end(id, 'crashed', 'it ended');
  const { exit } = (await get(process.id)).body;
  assert.deepEqual([exit.reason, exit.code], ['exit', 4]);
});

test('while the engine is unavailable the last known state is shown, and nothing is started', async (t) => {
  const { server, path, start, get } = await withSandbox(t);
  const process = await start({ name: 'job' });
  server.orchestrator.goAway();
  const { status, body } = await get('job');
  assert.deepEqual([status, body.id, body.status], [200, process.id, 'running']);
  const refused = await server.rest('POST', path, { body: { cmd: 'x' } });
  assert.deepEqual([refused.status, refused.body.error.code], [502, 'orchestrator_unreachable']);
  const listed = await server.rest('GET', path);
  assert.equal(listed.body.data.length, 1);
});

test('a process that a server recorded and never started is forgotten, but not at once', async (t) => {
  const box = await withSandbox(t);
  const old = await record(box, { startedAt: LONG_AGO });
  const young = await record(box, {});
  const started = await record(box, { pid: 77 });
  assert.equal((await box.get(old.id)).body.error.code, 'process_not_found');
  assert.deepEqual(
    [(await box.get(young.id)).body.status, (await box.get(young.id)).body.pid],
    ['running', null],
  );
  assert.equal((await box.get(started.id)).body.exit.reason, 'host_lost', 'its sandbox does not know it');
});

test('output that is gone with its sandbox is marked as dropped', async (t) => {
  const { server, agent, id, path, start, get } = await withSandbox(t);
  agent.output = 'hello';
  const process = await start();
  agent.end(process.id, { code: 0, reason: 'exit' });
  const events = async (query: string) =>
    String((await server.rest('GET', `${path}/${process.id}/output${query}`)).body);
  const read = await events('?stream=stdout');
  assert.match(read, /event: output\nid: 5\ndata: {"stream":"stdout","offset":0,"data":"aGVsbG8="}/);
  assert.match(await events('?offset=2-0'), /id: 5-0\ndata: {"stream":"stdout","offset":2,"data":"bGxv"}/);
  server.orchestrator.end(id, 'crashed', 'it ended');
  await waitUntil(async () => (await get(process.id)).body.status === 'exited');
  const late = await events('?offset=2-0');
  assert.match(late, /event: dropped\nid: 5-0\ndata: {"stream":"stdout","from":2,"to":5}\n\nevent: end\n/);
  assert.doesNotMatch(late, /event: output/);
});

test('an offset of another form, or beyond the end, is refused by name', async (t) => {
  const { server, path, start } = await withSandbox(t);
  const { id } = await start();
  for (const query of [
    '?offset=7',
    '?stream=stdout&offset=1-2',
    '?stream=stdout&offset=1',
    '?stream=x',
    '?offset=x',
  ]) {
    const { status, body } = await server.rest('GET', `${path}/${id}/output${query}`);
    assert.deepEqual([status, body.error.code], [400, 'invalid_request'], query);
  }
});
