import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract';
import { isTransient } from '@svc/contract/retry';
import { FakeSnapshotStore } from '../../testing/fake-snapshot-store.ts';
import {
  nextMillisecond,
  startTestServer,
  type RestReply,
  type TestServer,
} from '../../testing/test-server.ts';
import { body, until, UNKNOWN_ID } from '../../testing/sandboxes.ts';

interface Fixture {
  readonly server: TestServer;
  readonly store: FakeSnapshotStore;
  /** The id of a sandbox that ran and was stopped. */
  readonly stopped: string;
}

async function start(t: TestContext): Promise<Fixture> {
  const store = new FakeSnapshotStore();
  const server = await startTestServer(t, { snapshotStore: store });
  await waitUntil(() => server.health.current.isHealthy, 'the engine');
  const stopped = await runAndStop(server, 'source');
  return { server, store, stopped };
}

async function runAndStop(server: TestServer, name: string): Promise<string> {
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body(name) });
  assert.equal(made.body.status, 'running', JSON.stringify(made.body));
  await server.rest('POST', `/sandboxes/${made.body.id}/stop`);
  await until(server, name, 'stopped');
  return made.body.id;
}

const request = (sandboxId: string, name: string, more: object = {}) => ({
  body: { kind: 'disk', sandbox_id: sandboxId, name, ...more },
});

async function finished(server: TestServer, operationId: string): Promise<RestReply['body']> {
  let seen: RestReply['body'];
  await waitUntil(async () => {
    seen = (await server.rest('GET', `/snapshot-operations/${operationId}`)).body;
    return seen.status === 'succeeded' || seen.status === 'failed';
  }, 'the snapshot');
  return seen;
}

test('a snapshot is asked for with 202, made in the background, and then listed, found by id and by name', async (t) => {
  const { server, stopped } = await start(t);
  const asked = await server.rest('POST', '/snapshots', request(stopped, 'first', { labels: { a: 'b' } }));
  assert.equal(asked.status, 202, JSON.stringify(asked.body));
  assert.deepEqual([asked.body.kind, asked.body.status, asked.body.result], ['disk', 'queued', null]);
  const done = await finished(server, asked.body.id);
  assert.equal(done.status, 'succeeded', JSON.stringify(done));
  const { result } = done;
  assert.partialDeepStrictEqual(result, {
    kind: 'disk',
    name: 'first',
    labels: { a: 'b' },
    sandbox_id: stopped,
    location: { type: 'managed', id: result.id },
  });
  assert.match(result.digest, /^sha256:/);
  assert.deepEqual((await server.rest('GET', '/snapshots')).body.data, [result]);
  assert.deepEqual((await server.rest('GET', `/snapshots/${result.id}`)).body, result);
  assert.deepEqual((await server.rest('GET', '/snapshots/by-name/first')).body, result);
});

test('a sandbox that runs can be copied, or one that rests and is meant to last; those are candidates', async (t) => {
  const { server, stopped } = await start(t);
  const make = async (name: string, more: object = {}) =>
    await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: { ...body(name), ...more } });
  const running = await make('busy');
  const ephemeral = await make('brief', { lifecycle: { ephemeral: true } });
  for (const { body: sandbox } of [running, ephemeral]) {
    const asked = await server.rest('POST', '/snapshots', request(sandbox.id, `of-${sandbox.name}`));
    assert.equal((await finished(server, asked.body.id)).status, 'succeeded', JSON.stringify(asked.body));
  }
  const created = await server.rest('POST', '/sandboxes', { body: body('fresh') });
  const unborn = await server.rest('POST', '/sandboxes', {
    body: { ...body('unborn'), lifecycle: { ephemeral: true } },
  });
  for (const [{ body: sandbox }, reason] of [
    [created, /is created; wait until it runs, or start it/],
    [unborn, /is ephemeral and created; its disk goes with it/],
  ] as const) {
    const { status, body: answer } = await server.rest('POST', '/snapshots', request(sandbox.id, 'x'));
    assert.deepEqual([status, answer.error.code], [422, 'snapshot_ineligible']);
    assert.match(answer.error.message, reason);
  }
  const missing = await server.rest('POST', '/snapshots', request(UNKNOWN_ID, 'x'));
  assert.deepEqual([missing.status, missing.body.error.code], [404, 'sandbox_not_found']);
  const elsewhere = await server.rest('POST', '/snapshots', request(stopped, 'x', { dest_dir: 'a' }));
  assert.deepEqual([elsewhere.status, elsewhere.body.error.code], [422, 'snapshot_ineligible']);
  const { data } = (await server.rest('GET', '/sandboxes/snapshot-candidates')).body;
  assert.deepEqual(
    data.map(({ id }: { id: string }) => id),
    [stopped],
  );
});

test('of a sandbox that is away for a moment a snapshot is refused with a code that clients repeat', async (t) => {
  const { server, stopped } = await start(t);
  await server.database
    .updateTable('sandboxes')
    .set({ observed: 'temporarily_unavailable' })
    .where('id', '=', stopped)
    .execute();
  const { status, body: answer } = await server.rest('POST', '/snapshots', request(stopped, 'later'));
  assert.deepEqual([status, answer.error.code], [502, 'orchestrator_unreachable']);
  assert.equal(isTransient(answer.error.code), true);
});

test('the reference client is shown a manifest that it can read, and the digest of it', async (t) => {
  const { server, stopped } = await start(t);
  const labels = { '9': 'x', '10': 'é', z: '', a: '"' };
  const asked = await server.rest('POST', '/snapshots', request(stopped, 'first', { labels }));
  const { result } = await finished(server, asked.body.id);
  const headers = { 'user-agent': 'microsandbox-sdk/0.7.11' };
  const { body: seen } = await server.rest('GET', '/snapshots/by-name/first', { headers });
  const { image, state } = result.manifest;
  const time = result.created_at.replace(/\.?0+Z$/, 'Z');
  const text =
    `{"schema":1,"artifact":"snapshot","scope":"disk","created_at":"${time}","parent":null,` +
    `"image":{"ref":"${image.ref}","manifest_digest":"${image.manifest_digest}"},"source_sandbox":"source",` +
    `"state":{"kind":"file","format":"raw","fstype":"ext4","upper":{"file":"disk","size_bytes":${state.upper.size_bytes},` +
    `"integrity":{"algorithm":"sha256","digest":"${result.digest}"}}},` +
    `"labels":{"10":"é","9":"x","a":"\\"","z":""},"extensions":{},"requires":[]}`;
  assert.deepEqual(seen.manifest, JSON.parse(text));
  assert.equal(seen.digest, `sha256:${createHash('sha256').update(text).digest('hex')}`);
  const operation = await server.rest('GET', `/snapshot-operations/${asked.body.id}`, { headers });
  assert.deepEqual(operation.body.result, seen);
  assert.deepEqual((await server.rest('GET', '/snapshots', { headers })).body.data, [seen]);
});

test('a name that is taken is refused, and gives way with force', async (t) => {
  const { server, stopped, store } = await start(t);
  const first = await server.rest('POST', '/snapshots', request(stopped, 'same'));
  const { result } = await finished(server, first.body.id);
  const refused = await server.rest('POST', '/snapshots', request(stopped, 'same'));
  assert.deepEqual([refused.status, refused.body.error.code], [409, 'name_already_exists']);
  const forced = await server.rest('POST', '/snapshots', request(stopped, 'same', { force: true }));
  const second = await finished(server, forced.body.id);
  assert.equal(second.status, 'succeeded');
  assert.equal((await server.rest('GET', `/snapshots/${result.id}`)).status, 404);
  assert.deepEqual((await server.rest('GET', '/snapshots/by-name/same')).body, second.result);
  await waitUntil(async () => (await store.listSnapshots()).length === 1, 'the old one is cleared away');
});

test('a snapshot that is removed is gone at once, and its disk soon after', async (t) => {
  const { server, stopped, store } = await start(t);
  for (const [name, path] of [
    ['one', (id: string) => `/snapshots/${id}`],
    ['two', () => '/snapshots/by-name/two'],
  ] as const) {
    const asked = await server.rest('POST', '/snapshots', request(stopped, name));
    const { result } = await finished(server, asked.body.id);
    const removed = await server.rest('DELETE', path(result.id));
    assert.deepEqual([removed.status, removed.body.message], [200, 'Snapshot scheduled for deletion']);
    const again = await server.rest('DELETE', path(result.id));
    assert.deepEqual([again.status, again.body.error.code], [404, 'snapshot_not_found']);
  }
  await waitUntil(async () => (await store.listSnapshots()).length === 0, 'the disks are removed');
});

test('a snapshot that the engine cannot make fails with the reason', async (t) => {
  const { server, stopped, store } = await start(t);
  store.nextFailure = new PlatformError('disk_full', 'the host is full');
  const asked = await server.rest('POST', '/snapshots', request(stopped, 'x'));
  const done = await finished(server, asked.body.id);
  assert.deepEqual([done.status, done.error], ['failed', { code: 'disk_full', message: 'the host is full' }]);
  const { data } = (await server.rest('GET', '/snapshot-operations?exclude_redundant=true')).body;
  assert.deepEqual(
    data.map(({ snapshot_name: name }: { snapshot_name: string }) => name),
    ['x'],
  );
});

test('a snapshot that was asked for is made when the engine is back', async (t) => {
  const { server, stopped, store } = await start(t);
  store.isAway = true;
  const asked = await server.rest('POST', '/snapshots', request(stopped, 'late'));
  assert.equal(asked.status, 202);
  await waitUntil(async () => {
    const { body: seen } = await server.rest('GET', `/snapshot-operations/${asked.body.id}`);
    return seen.status === 'in_progress';
  }, 'it was tried');
  store.isAway = false;
  assert.equal((await finished(server, asked.body.id)).status, 'succeeded');
});

test('a snapshot cannot be asked for while the engine is away', async (t) => {
  const { server, stopped } = await start(t);
  server.orchestrator.goAway();
  await waitUntil(() => !server.health.current.isHealthy, 'the absence');
  const { status, body: answer } = await server.rest('POST', '/snapshots', request(stopped, 'x'));
  assert.deepEqual([status, answer.error.code], [502, 'orchestrator_unreachable']);
});

test('a page of snapshots starts where the last one ended', async (t) => {
  const { server, stopped } = await start(t);
  for (const name of ['a', 'b', 'c']) {
    const asked = await server.rest('POST', '/snapshots', request(stopped, name));
    await finished(server, asked.body.id);
    await nextMillisecond();
  }
  const first = (await server.rest('GET', '/snapshots?limit=2')).body;
  const rest = (await server.rest('GET', `/snapshots?limit=2&cursor=${first.next_cursor}`)).body;
  const names = [...first.data, ...rest.data].map(({ name }: { name: string }) => name);
  assert.deepEqual(names, ['c', 'b', 'a']);
  assert.deepEqual([first.has_more, rest.has_more, rest.next_cursor], [true, false, null]);
  const wrong = await server.rest('GET', `/snapshot-operations?cursor=${first.next_cursor}`);
  assert.deepEqual([wrong.status, wrong.body.error.code], [400, 'invalid_cursor']);
});
