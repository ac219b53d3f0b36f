import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { ChannelClient } from '@svc/contract';
import { pino } from 'pino';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { body, startHealthy } from '../testing/sandboxes.ts';
import { openStore } from '../store/open-store.ts';
import { postgresDialect } from '../store/postgres.ts';
import { TestPostgres } from '../testing/test-postgres.ts';
import { type TestServer } from '../testing/test-server.ts';
import { TestSandbox } from '../testing/code-sandbox.ts';

let postgres: TestPostgres;
let sandbox: TestSandbox;
before(async () => {
  postgres = await TestPostgres.start();
  sandbox = await TestSandbox.start();
});
after(async () => {
  await sandbox.stop();
  await postgres[Symbol.asyncDispose]();
});

/** All of its sandboxes are the one of this file. */
class OneSandbox extends FakeOrchestrator {
  override async openChannel(_id: string, signal: AbortSignal): Promise<ChannelClient> {
    return await sandbox.openChannel(signal);
  }
}

/** Two servers on one store, and a running sandbox. */
async function startTwo(t: TestContext) {
  const url = await postgres.createDatabase();
  const orchestrator = new OneSandbox();
  const open = async () => {
    const database = await openStore(postgresDialect(url, pino({ level: 'silent' })));
    return await startHealthy(t, { orchestrator, database });
  };
  const [first, second] = [await open(), await open()];
  const made = await first.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('box') });
  assert.equal(made.body.status, 'running');
  const path = `/sandboxes/${made.body.id}`;
  const run = async (server: TestServer, context: string, code: string) =>
    await server.rest('POST', `${path}/code`, { body: { context, code } });
  const make = async (server: TestServer, more: object = {}) =>
    await server.rest('POST', `${path}/contexts`, { body: { language: 'python', ...more } });
  const status = async (server: TestServer, id: string): Promise<unknown> =>
    (await server.rest('GET', `${path}/contexts/${id}`)).body.status;
  return { first, second, path, run, make, status };
}

/** Runs until it is interrupted. */
const ENDLESS = 'kept = 7\nimport time\nwhile True: time.sleep(0.01)';

test('a context is there through every server of a store, with its state', async (t) => {
  const { first, second, path, run, make, status } = await startTwo(t);
  const { body: made } = await make(first, { name: 'mine', cwd: '/usr', env: { WORD: 'hush' } });
  await run(first, 'mine', 'x = 41');
  assert.equal((await run(second, 'mine', 'x += 1; x')).body.result, '42');
  assert.equal((await run(first, made.id, 'x')).body.result, '42');
  assert.equal((await make(second, { name: 'mine' })).body.error.code, 'name_already_exists');
  const lists = await Promise.all([first, second].map((server) => server.rest('GET', `${path}/contexts`)));
  for (const list of lists) assert.deepEqual(list.body, [made]);
  assert.equal(await status(second, 'mine'), 'idle');
  // The one that takes its place is started as the first one was.
  assert.equal((await second.rest('POST', `${path}/contexts/mine/restart`)).status, 200);
  const code = 'import os; (os.getcwd(), os.environ["WORD"], "x" in globals())';
  assert.equal((await run(second, 'mine', code)).body.result, "('/usr', 'hush', False)");
  const rows = await first.database.selectFrom('code_contexts').selectAll().execute();
  assert.doesNotMatch(JSON.stringify(rows), /hush/, 'a variable can be read in the store');
});

test('output of a run through one server is in no answer of another server', async (t) => {
  const { first, second, run, make } = await startTwo(t);
  const { body: made } = await make(first);
  for (const [server, word] of [
    [first, 'one'],
    [second, 'two'],
    [first, 'three'],
    [second, 'four'],
  ] as const) {
    const code = `import sys; print('${word}'); print('${word}!', file=sys.stderr)`;
    const { stdout, stderr } = (await run(server, made.id, code)).body;
    assert.deepEqual({ stdout, stderr }, { stdout: `${word}\n`, stderr: `${word}!\n` });
  }
});

test('code that runs through one server is seen and interrupted through another', async (t) => {
  const { first, second, path, run, make, status } = await startTwo(t);
  const { body: made } = await make(first);
  const running = run(first, made.id, ENDLESS);
  await waitUntil(async () => (await status(second, made.id)) === 'busy');
  let isOver = false;
  void running.then(() => (isOver = true));
  // Until the code has begun there is nothing to interrupt.
  await waitUntil(async () => {
    await second.rest('POST', `${path}/contexts/${made.id}/interrupt`);
    return isOver;
  });
  const { status: how, stderr } = (await running).body;
  assert.equal(how, 'interrupted');
  assert.match(stderr, /Interrupted on request; the state is kept/);
  assert.equal((await run(second, made.id, 'kept')).body.result, '7');
  assert.equal(await status(first, made.id), 'idle');
});

test('a context that is removed through one server is lost to code that runs through another', async (t) => {
  const { first, second, path, run, make, status } = await startTwo(t);
  const others = await countInterpreters();
  const { body: made } = await make(first);
  assert.equal(await countInterpreters(), others + 1);
  const running = run(first, made.id, ENDLESS);
  await waitUntil(async () => (await status(second, made.id)) === 'busy');
  const waiting = run(first, made.id, '1');
  const leases = async () => await first.database.selectFrom('code_turns').selectAll().execute();
  await waitUntil(async () => (await leases()).length === 2);
  assert.equal((await second.rest('DELETE', `${path}/contexts/${made.id}`)).status, 200);
  for (const answer of [await running, await waiting]) assert.equal(answer.body.error?.code, 'context_lost');
  assert.equal((await run(first, made.id, '1')).body.error.code, 'context_not_found');
  assert.equal(await countInterpreters(), others, 'its interpreter runs on');
});

test('a context outlives the server that made it', async (t) => {
  const { first, second, run, make, status } = await startTwo(t);
  const { body: made } = await make(first, { name: 'heir' });
  await run(first, made.id, 'x = 1');
  await first.close();
  assert.equal((await run(second, 'heir', 'x')).body.result, '1');
  assert.equal(await status(second, made.id), 'idle');
});

async function countInterpreters(): Promise<number> {
  const channel = await sandbox.openChannel(AbortSignal.timeout(60_000));
  try {
    return (await channel.detached.list()).filter(({ end }) => end === null).length;
  } finally {
    channel.close();
  }
}
