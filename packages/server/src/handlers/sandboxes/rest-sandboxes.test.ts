import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { recordVolume, body, eventsOf, startHealthy, until, UNKNOWN_ID } from '../../testing/sandboxes.ts';
import { listRuns } from '../../store/runs.ts';

test('a sandbox that is created without a start rests as created and is shown whole', async (t) => {
  const server = await startHealthy(t);
  const { status, body: sandbox, headers } = await server.rest('POST', '/sandboxes', { body: body('one') });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(sandbox).toSorted(), [
    'automatic_recovery_ends_at',
    'created_at',
    'ends_at',
    'ephemeral',
    'id',
    'isolation',
    'last_failure_message',
    'name',
    'node',
    'org_id',
    'requested',
    'slug',
    'started_at',
    'status',
    'status_reason',
    'stopped_at',
    'temporarily_unavailable_since',
  ]);
  assert.partialDeepStrictEqual(sandbox, {
    name: 'one',
    status: 'created',
    status_reason: null,
    ephemeral: false,
  });
  assert.match(sandbox.slug, /^[a-z]+-[a-z]+-\d{4}$/);
  assert.equal(headers.get('etag'), '"1"');
  assert.deepEqual(await server.orchestrator.list(), []);
});

test('start=true with wait_for answers when it runs', async (t) => {
  const server = await startHealthy(t);
  const { status, body: sandbox } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one'),
  });
  assert.deepEqual([status, sandbox.status, sandbox.isolation], [200, 'running', 'container']);
  assert.equal(sandbox.started_at, (await server.orchestrator.get(sandbox.id))?.startedAt);
  assert.deepEqual(await eventsOf(server, sandbox.id), ['sandbox_created', 'sandbox_started']);
});

test('start=true without waiting answers at once, while it is scheduled', async (t) => {
  const server = await startHealthy(t);
  const { body: sandbox } = await server.rest('POST', '/sandboxes?start=true', {
    body: body('one', { reference: 'slow' }),
  });
  assert.deepEqual([sandbox.status, sandbox.status_reason], ['starting', 'scheduling']);
  server.orchestrator.finishFetching();
  await until(server, 'one', 'running');
});

test('a wait ends with its time and says how far the sandbox is', async (t) => {
  const server = await startHealthy(t);
  const { status, body: sandbox } = await server.rest(
    'POST',
    '/sandboxes?start=true&wait_for=running&wait_timeout=0',
    {
      body: body('one', { reference: 'slow' }),
    },
  );
  assert.deepEqual([status, sandbox.status], [200, 'starting']);
  server.orchestrator.finishFetching();
});

test('a wait ends when the start fails, and the record says why', async (t) => {
  const server = await startHealthy(t);
  const { body: sandbox } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one', { reference: 'missing' }),
  });
  assert.deepEqual(
    [sandbox.status, sandbox.status_reason, sandbox.last_failure_message],
    ['failed', null, 'image missing is not known; import it first'],
  );
  assert.deepEqual(await eventsOf(server, sandbox.id), ['sandbox_created', 'sandbox_failed']);
});

test('a wait without wait_for, or for something else than running, is refused by name', async (t) => {
  const server = await startHealthy(t);
  for (const [query, field] of [
    ['wait_timeout=1', 'wait_timeout'],
    ['wait_for=stopped', 'wait_for'],
    ['wait_for=running&wait_timeout=-1', 'wait_timeout'],
    ['wait=running', 'wait'],
  ]) {
    const { status, body: answer } = await server.rest('POST', `/sandboxes?${query}`, { body: body('one') });
    assert.equal(status, 400);
    assert.equal(answer.error.code, 'invalid_request');
    assert.ok(answer.error.message.includes(field), answer.error.message);
  }
});

test('more waits than there is room for are 429 and change nothing', async (t) => {
  const server = await startHealthy(t, { restSettings: { maxWaiters: 1 } });
  const slow = body('slow', { reference: 'slow' });
  const held = server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: slow });
  await waitUntil(() => server.orchestrator.fetching === 1);
  const refused = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('two') });
  assert.equal(refused.status, 429);
  assert.deepEqual(refused.body.error.code, 'rate_limited');
  assert.equal(refused.body.error.message, 'readiness wait capacity exhausted');
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.equal((await server.rest('GET', '/sandboxes/by-name/two')).status, 404);
  server.orchestrator.finishFetching();
  assert.equal((await held).body.status, 'running');
  const next = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('two') });
  assert.equal(next.body.status, 'running');
});

test('a name or slug that is taken is 409 and names it', async (t) => {
  const server = await startHealthy(t);
  await server.rest('POST', '/sandboxes', { body: body('one', { slug: 'first-one' }) });
  const name = await server.rest('POST', '/sandboxes', { body: body('one') });
  assert.deepEqual([name.status, name.body.error.code], [409, 'name_already_exists']);
  assert.equal(name.body.error.details.field, 'name');
  const slug = await server.rest('POST', '/sandboxes', { body: body('two', { slug: 'first-one' }) });
  assert.deepEqual([slug.status, slug.body.error.details.field], [409, 'slug']);
});

test('a sandbox is found by id and by name, and nothing else is', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one.two') });
  assert.deepEqual((await server.rest('GET', `/sandboxes/${made.id}`)).body, made);
  assert.deepEqual((await server.rest('GET', `/sandboxes/${made.id.toUpperCase()}`)).body, made);
  assert.deepEqual((await server.rest('GET', '/sandboxes/by-name/one.two')).body, made);
  for (const path of [`/sandboxes/${UNKNOWN_ID}`, '/sandboxes/by-name/none']) {
    const { status, body: answer } = await server.rest('GET', path);
    assert.deepEqual([status, answer.error.code], [404, 'sandbox_not_found']);
  }
  assert.equal((await server.rest('GET', '/sandboxes/nonsense')).status, 400);
});

test('start, stop and start again, each legal move and the events of it', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const started = await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`, { body: {} });
  assert.deepEqual([started.status, started.body.status], [200, 'running']);
  const stopping = await server.rest('POST', '/sandboxes/by-name/one/stop');
  assert.deepEqual([stopping.status, stopping.body.status], [200, 'stopping']);
  const stopped = await until(server, 'one', 'stopped');
  assert.ok(stopped.stopped_at >= stopped.started_at);
  await server.rest('POST', '/sandboxes/by-name/one/start?wait_for=running');
  assert.deepEqual(await eventsOf(server, made.id), [
    'sandbox_created',
    'sandbox_started',
    'sandbox_stopped',
    'sandbox_started',
  ]);
});

test('a move that the state does not allow is 409 and names the state', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const refused = async (verb: string, payload: object, state: string) => {
    const { status, body: answer } = await server.rest('POST', `/sandboxes/${made.id}/${verb}`, {
      body: payload,
    });
    assert.deepEqual([status, answer.error.code], [409, 'invalid_state_transition']);
    assert.ok(answer.error.message.startsWith(`Sandbox 'one' is ${state};`), answer.error.message);
  };
  await refused('stop', {}, 'created');
  await refused('recover', { action: 'wait' }, 'created');
  await server.rest('POST', `/sandboxes/${made.id}/start?wait_for=running`);
  await refused('start', {}, 'running');
  await refused('recover', { action: 'stop' }, 'running');
  await server.rest('POST', `/sandboxes/${made.id}/stop`);
  await until(server, 'one', 'stopped');
  await refused('stop', {}, 'stopped');
});

test('starting again while it starts joins the start and does not disturb it', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes?start=true', {
    body: body('one', { reference: 'slow' }),
  });
  await waitUntil(() => server.orchestrator.fetching === 1);
  const joined = await server.rest('POST', `/sandboxes/${made.id}/start`);
  assert.deepEqual([joined.status, joined.body.status], [200, 'starting']);
  server.orchestrator.finishFetching();
  await until(server, 'one', 'running');
  assert.equal(server.orchestrator.changesAsked, 1);
});

test('a stop during a start ends the start, also while the image is fetched', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes?start=true', {
    body: body('one', { reference: 'slow' }),
  });
  await waitUntil(() => server.orchestrator.fetching === 1);
  const { body: stopping } = await server.rest('POST', `/sandboxes/${made.id}/stop`);
  assert.equal(stopping.status, 'stopping');
  await until(server, 'one', 'stopped');
  assert.equal(server.orchestrator.fetching, 0);
  assert.deepEqual(await server.orchestrator.list(), []);
});

test('a delete frees the name at once, in every state, and leaves nothing in the engine', async (t) => {
  const server = await startHealthy(t);
  for (const query of ['', '?start=true&wait_for=running']) {
    for (const path of ['by-id', 'by-name']) {
      const { body: made } = await server.rest('POST', `/sandboxes${query}`, { body: body('one') });
      const target = path === 'by-id' ? `/sandboxes/${made.id}` : '/sandboxes/by-name/one';
      const { status, body: answer } = await server.rest('DELETE', target);
      assert.deepEqual([status, answer], [200, { message: "Sandbox 'one' is scheduled for deletion" }]);
      assert.equal((await server.rest('GET', target)).status, 404);
      assert.equal((await server.rest('DELETE', target)).status, 404);
      assert.deepEqual((await server.rest('GET', '/sandboxes')).body.data, []);
    }
  }
  await waitUntil(async () => (await server.orchestrator.list()).length === 0);
});

test('a delete ends the run at once, whenever the engine gets to it', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one'),
  });
  server.orchestrator.failAtChange = server.orchestrator.changesAsked + 1;
  await server.rest('DELETE', `/sandboxes/${made.id}`);
  assert.equal((await listRuns(server.database, made.id))[0]?.end_reason, 'removed');
  await waitUntil(async () => (await server.orchestrator.list()).length === 0);
});

test('a delete during a start ends the start', async (t) => {
  const server = await startHealthy(t);
  await server.rest('POST', '/sandboxes?start=true', { body: body('one', { reference: 'slow' }) });
  await waitUntil(() => server.orchestrator.fetching === 1);
  await server.rest('DELETE', '/sandboxes/by-name/one');
  await waitUntil(() => server.orchestrator.fetching === 0);
  await waitUntil(async () => (await server.orchestrator.list()).length === 0);
});

test('a new name or slug counts at once and the old one is free', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  const renamed = await server.rest('PATCH', `/sandboxes/${made.id}`, {
    body: { name: 'two', slug: 'my-slug' },
  });
  assert.partialDeepStrictEqual(renamed, { status: 200, body: { name: 'two', slug: 'my-slug' } });
  assert.equal(renamed.headers.get('etag'), '"2"');
  assert.equal((await server.rest('GET', '/sandboxes/by-name/one')).status, 404);
  assert.equal((await server.rest('POST', '/sandboxes', { body: body('one') })).status, 200);
  const taken = await server.rest('PATCH', `/sandboxes/${made.id}`, { body: { name: 'one' } });
  assert.deepEqual([taken.status, taken.body.error.code], [409, 'name_already_exists']);
  const same = await server.rest('PATCH', `/sandboxes/${made.id}`, { body: { name: 'two' } });
  assert.equal(same.headers.get('etag'), '"2"');
  for (const bad of [{ name: '' }, { name: '-x' }, { slug: 'A' }, { slug: 'a--b' }, { other: 1 }]) {
    assert.equal((await server.rest('PATCH', `/sandboxes/${made.id}`, { body: bad })).status, 400);
  }
  assert.equal((await server.rest('PATCH', `/sandboxes/${UNKNOWN_ID}`, { body: { name: 'x' } })).status, 404);
  assert.deepEqual(await eventsOf(server, made.id), ['sandbox_created', 'sandbox_renamed']);
});

test('an ephemeral sandbox is gone when its run ends, and stays when its start fails', async (t) => {
  const server = await startHealthy(t);
  const lifecycle = { ephemeral: true };
  for (const end of ['stop', 'crash'] as const) {
    const { body: made } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
      body: body('one', { lifecycle }),
    });
    assert.equal(made.ephemeral, true);
    if (end === 'crash') server.orchestrator.end(made.id, 'crashed', 'it crashed');
    else await server.rest('POST', `/sandboxes/${made.id}/stop`);
    await waitUntil(async () => (await server.rest('GET', `/sandboxes/${made.id}`)).status === 404);
    const ended = end === 'crash' ? 'sandbox_failed' : 'sandbox_stopped';
    assert.deepEqual(await eventsOf(server, made.id), [
      'sandbox_created',
      'sandbox_started',
      ended,
      'sandbox_deleted',
    ]);
    await waitUntil(async () => (await server.orchestrator.list()).length === 0);
  }
  const { body: failed } = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body('one', { reference: 'missing', lifecycle }),
  });
  assert.equal(failed.status, 'failed');
});

test('while the engine is away nothing is promised, but a record can be made', async (t) => {
  const server = await startHealthy(t);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('one') });
  server.orchestrator.goAway();
  await waitUntil(() => !server.health.current.isHealthy);
  for (const [method, path] of [
    ['POST', '/sandboxes?start=true'],
    ['POST', `/sandboxes/${made.id}/start`],
    ['POST', `/sandboxes/${made.id}/stop`],
    ['DELETE', `/sandboxes/${made.id}`],
  ] as const) {
    const payload = method === 'POST' && path.startsWith('/sandboxes?') ? { body: body('two') } : {};
    const { status, body: answer } = await server.rest(method, path, payload);
    assert.deepEqual([status, answer.error.code], [502, 'orchestrator_unreachable'], path);
  }
  const { body: page } = await server.rest('GET', '/sandboxes');
  assert.deepEqual(page.data, [made]);
  assert.equal((await server.rest('POST', '/sandboxes', { body: body('three') })).status, 200);
});

test('a host without room is said so while it waits, and the start goes on when there is room', async (t) => {
  const server = await startHealthy(t);
  server.orchestrator.capacity = 0;
  await server.rest('POST', '/sandboxes?start=true', { body: body('one') });
  await waitUntil(async () => {
    const { body: sandbox } = await server.rest('GET', '/sandboxes/by-name/one');
    return sandbox.status === 'starting' && sandbox.status_reason === 'insufficient_capacity';
  });
  server.orchestrator.capacity = 1;
  const sandbox = await until(server, 'one', 'running');
  assert.equal(sandbox.status_reason, null);
});

test('the volumes that a sandbox mounts are listed, with the host volume without a name', async (t) => {
  const server = await startHealthy(t);
  const volumeId = await recordVolume(server, 'data');
  const { body: made } = await server.rest('POST', '/sandboxes', {
    body: body('one', {
      mounts: [
        { type: 'named', name: 'data', guest: '/data', options: { readonly: true } },
        { type: 'bind', host: 'shared', guest: '/shared' },
        { type: 'tmpfs', guest: '/scratch' },
      ],
    }),
  });
  const { status, body: mounts } = await server.rest('GET', `/sandboxes/${made.id}/volumes`);
  assert.equal(status, 200);
  assert.deepEqual(
    mounts.map((mount: { volume_id: string }) => ({ ...mount, volume_id: mount.volume_id === volumeId })),
    [
      { volume_id: true, name: 'data', mount_path: '/data', read_only: true },
      { volume_id: false, name: null, mount_path: '/shared', read_only: false },
    ],
  );
  assert.equal((await server.rest('GET', `/sandboxes/${UNKNOWN_ID}/volumes`)).status, 404);
});

test('a volume that does not exist is 404 and named, and nothing is made', async (t) => {
  const server = await startHealthy(t);
  const mounts = [{ type: 'named', name: 'ghost', guest: '/data' }];
  const { status, body: answer } = await server.rest('POST', '/sandboxes', { body: body('one', { mounts }) });
  assert.deepEqual([status, answer.error.code], [404, 'volume_not_found']);
  assert.match(answer.error.message, /'ghost'/);
  assert.equal((await server.rest('GET', '/sandboxes/by-name/one')).status, 404);
});

test('the same Idempotency-Key makes one sandbox', async (t) => {
  const server = await startHealthy(t);
  const create = () =>
    server.rest('POST', '/sandboxes', { body: body('one'), headers: { 'idempotency-key': 'k1' } });
  const [first, second] = await Promise.all([create(), create()]);
  assert.deepEqual(first.body, second.body);
  assert.equal(
    [first, second].filter(({ headers }) => headers.get('idempotency-replayed') === 'true').length,
    1,
  );
});

test('100 sandboxes made at once are 100 sandboxes that run', async (t: TestContext) => {
  const server = await startHealthy(t);
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) =>
      server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body(`s${n}`) }),
    ),
  );
  assert.deepEqual(new Set(answers.map(({ body: sandbox }) => sandbox.status)), new Set(['running']));
  assert.equal(new Set(answers.map(({ body: sandbox }) => sandbox.slug)).size, 100);
  assert.equal((await server.orchestrator.list()).length, 100);
});
