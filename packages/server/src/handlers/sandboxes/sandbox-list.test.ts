import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApiKey } from '../../store/api-keys-and-tokens.ts';
import { ensureOrganization } from '../../store/organizations.ts';
import { startTestServer, type TestServer } from '../../testing/test-server.ts';
import { body } from '../../testing/sandboxes.ts';

/** Each in its own millisecond, the resolution of a list's order. */
async function create(server: TestServer, sandbox: object): Promise<void> {
  assert.equal((await server.rest('POST', '/sandboxes', { body: sandbox })).status, 200);
  const now = Date.now();
  while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
}

const names = (page: { body: { data: { name: string }[] } }) => page.body.data.map(({ name }) => name);
const list = (server: TestServer, query: Readonly<Record<string, string>> = {}) =>
  server.rest('GET', `/sandboxes?${new URLSearchParams(query).toString()}`);

test('sandboxes are listed newest first, page by page, each once', async (t) => {
  const server = await startTestServer(t);
  for (let n = 0; n < 7; n += 1) await create(server, body(`s${n}`));
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await list(server, { limit: '3', ...(cursor === null ? {} : { cursor }) });
    assert.equal(page.body.has_more, page.body.next_cursor !== null);
    seen.push(...names(page));
    cursor = page.body.next_cursor;
  } while (cursor !== null);
  assert.deepEqual(seen, ['s6', 's5', 's4', 's3', 's2', 's1', 's0']);
});

test('pages neither skip nor repeat while sandboxes come and go', async (t) => {
  const server = await startTestServer(t);
  for (let n = 0; n < 6; n += 1) await create(server, body(`s${n}`));
  const first = await list(server, { limit: '3' });
  await server.rest('POST', '/sandboxes', { body: body('new') });
  await server.rest('DELETE', '/sandboxes/by-name/s3');
  await server.rest('DELETE', '/sandboxes/by-name/s1');
  const second = await list(server, { limit: '3', cursor: first.body.next_cursor });
  assert.deepEqual([...names(first), ...names(second)], ['s5', 's4', 's3', 's2', 's0']);
});

test('labels select those sandboxes that have all of them', async (t) => {
  const server = await startTestServer(t);
  const make = (name: string, labels: object) => create(server, body(name, { labels }));
  await make('a', { team: 'ml', env: 'prod' });
  await make('b', { team: 'ml', env: 'dev' });
  await make('c', { team: 'web', env: 'prod', empty: '' });
  await make('d', {});
  const matching = async (labels: object) => names(await list(server, { labels: JSON.stringify(labels) }));
  assert.deepEqual(await matching({ team: 'ml' }), ['b', 'a']);
  assert.deepEqual(await matching({ team: 'ml', env: 'prod' }), ['a']);
  assert.deepEqual(await matching({ env: 'prod', team: 'web', empty: '' }), ['c']);
  assert.deepEqual(await matching({ team: 'none' }), []);
  assert.deepEqual(await matching({}), ['d', 'c', 'b', 'a']);
  await server.rest('DELETE', '/sandboxes/by-name/b');
  assert.deepEqual(await matching({ team: 'ml' }), ['a']);
});

test('pages of a selection are as stable as pages of all', async (t) => {
  const server = await startTestServer(t);
  for (let n = 0; n < 6; n += 1) {
    await create(server, body(`s${n}`, { labels: { even: String(n % 2 === 0) } }));
  }
  const labels = '{"even":"true"}';
  const first = await list(server, { labels, limit: '2' });
  const second = await list(server, { labels, limit: '2', cursor: first.body.next_cursor });
  assert.deepEqual([names(first), names(second)], [['s4', 's2'], ['s0']]);
  assert.equal(second.body.has_more, false);
});

test('a selection, limit or cursor that makes no sense is 400 and named', async (t) => {
  const server = await startTestServer(t);
  for (const [query, code] of [
    [{ labels: 'team=ml' }, 'invalid_request'],
    [{ labels: '["a"]' }, 'invalid_request'],
    [{ labels: '{"a":1}' }, 'invalid_request'],
    [{ limit: '0' }, 'invalid_request'],
    [{ limit: '101' }, 'invalid_request'],
    [{ limit: 'x' }, 'invalid_request'],
    [{ cursor: 'nonsense' }, 'invalid_cursor'],
    [{ page: '2' }, 'invalid_request'],
  ] as const) {
    const { status, body: answer } = await list(server, query);
    assert.deepEqual([status, answer.error.code], [400, code]);
    assert.ok(answer.error.message.includes(Object.keys(query)[0]), answer.error.message);
  }
});

test("another organization's sandboxes are not listed, found, changed or removed", async (t) => {
  const server = await startTestServer(t, { signingKey: new Uint8Array(32).fill(1) });
  const keyFor = async (slug: string) => {
    const organizationId = await ensureOrganization(server.database, slug);
    const credential = { name: slug, createdBy: null, expiresAt: null };
    return (await createApiKey(server.database, organizationId, credential)).secret;
  };
  const [ours, theirs] = [await keyFor('ours'), await keyFor('theirs')];
  const { body: made } = await server.rest('POST', '/sandboxes', { key: ours, body: body('one') });
  const missing = await server.rest('GET', '/sandboxes/00000000-0000-4000-8000-000000000000', {
    key: theirs,
  });
  for (const [method, path, payload] of [
    ['GET', `/sandboxes/${made.id}`],
    ['GET', `/sandboxes/${made.id}/volumes`],
    ['PATCH', `/sandboxes/${made.id}`, { name: 'mine' }],
    ['GET', '/sandboxes/by-name/one'],
  ] as const) {
    const options = payload === undefined ? {} : { body: payload };
    const { status, body: answer } = await server.rest(method, path, { key: theirs, ...options });
    assert.deepEqual([status, answer.error.code], [missing.status, missing.body.error.code]);
  }
  assert.deepEqual((await server.rest('GET', '/sandboxes', { key: theirs })).body.data, []);
  const same = await server.rest('POST', '/sandboxes', { key: theirs, body: body('one') });
  assert.equal(same.status, 200);
});
