import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { followEvents, type FollowedEvent } from '../../testing/follow-events.ts';
import { startTestServer } from '../../testing/test-server.ts';

const SPEC = { image: { type: 'oci', reference: 'x' } };

interface Page {
  readonly data: readonly { readonly text: string; readonly source: string }[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

async function withSandbox(t: TestContext, query = '?start=true&wait_for=running') {
  const server = await startTestServer(t);
  const { status, body } = await server.rest('POST', `/sandboxes${query}`, {
    body: { name: 'box', ...SPEC },
  });
  assert.equal(status, 200, JSON.stringify(body));
  return { server, id: body.id as string };
}

const texts = (events: readonly FollowedEvent[]) =>
  events.filter(({ event }) => event === 'log').map(({ data }) => data['text']);

test('a stream has what was written before and after it began, and ends with the run', async (t) => {
  const { server, id } = await withSandbox(t);
  server.orchestrator.addLog(id, 'stdout', 'before\n');
  const reading = Array.fromAsync(followEvents(server, `/sandboxes/${id}/logs`));
  server.orchestrator.addLog(id, 'stderr', 'after\n');
  server.orchestrator.addLog(id, 'system', 'not asked for');
  await server.rest('POST', `/sandboxes/${id}/stop`, { body: {} });
  const events = await reading;
  assert.deepEqual(texts(events), ['before\n', 'after\n']);
  assert.deepEqual(events.at(-1), { event: 'end', id: undefined, data: {} });
  const [first] = events;
  assert.deepEqual(Object.keys(first?.data ?? {}).toSorted(), ['source', 'text', 'ts']);
  assert.match(JSON.stringify(first?.data['ts']), /^"\d{4}-.*Z"$/);
});

test('the reference client, which prints texts as they come, is shown lines of svc itself with their end', async (t) => {
  const { server, id } = await withSandbox(t);
  server.orchestrator.addLog(id, 'stdout', 'from inside');
  server.orchestrator.addLog(id, 'system', 'from svc');
  await server.rest('POST', `/sandboxes/${id}/stop`, { body: {} });
  const headers = { 'user-agent': 'microsandbox-sdk/0.7.11' };
  const path = `/sandboxes/${id}/logs?sources=stdout,system`;
  const shown = texts(await Array.fromAsync(followEvents(server, path, headers)));
  assert.ok(shown.includes('from inside') && shown.includes('from svc\n'), JSON.stringify(shown));
});

test('a stream resumes behind the last event that was seen, and gives the sources that were asked for', async (t) => {
  const { server, id } = await withSandbox(t);
  for (const text of ['a', 'b', 'c']) server.orchestrator.addLog(id, 'stdout', text);
  server.orchestrator.addLog(id, 'stderr', 'error');
  await server.rest('POST', `/sandboxes/${id}/stop`, { body: {} });
  await waitUntil(async () => (await server.orchestrator.get(id))?.state === 'stopped');
  const all = await Array.fromAsync(followEvents(server, `/sandboxes/${id}/logs?sources=stdout`));
  assert.deepEqual(texts(all), ['a', 'b', 'c']);
  // A client of the reference product ends a stream whose ids are anything else: a count and pairs of numbers.
  for (const { id: cursor = '' } of all.slice(0, -1)) {
    const bytes = Buffer.from(cursor, 'base64');
    assert.equal(bytes.length, 1 + (bytes[0] ?? 0) * 16);
    assert.equal(bytes.toString('base64'), cursor);
  }
  const headers = { 'last-event-id': all[0]?.id ?? '' };
  assert.deepEqual(texts(await Array.fromAsync(followEvents(server, `/sandboxes/${id}/logs`, headers))), [
    'b',
    'c',
    'error',
  ]);
});

test('a stream of a sandbox that was never started ends at once', async (t) => {
  const { server, id } = await withSandbox(t, '');
  const events = await Array.fromAsync(followEvents(server, `/sandboxes/${id}/logs`));
  assert.deepEqual(
    events.map(({ event }) => event),
    ['end'],
  );
});

test('a bad cursor, a bad source and a sandbox that is not there are answers, not streams', async (t) => {
  const { server, id } = await withSandbox(t);
  const outcome = async (path: string, headers = {}) => {
    const { status, body } = await server.rest('GET', path, { headers });
    return [status, body.error.code];
  };
  for (const cursor of ['12', 'abc', 'AQ==']) {
    const headers = { 'last-event-id': cursor };
    assert.deepEqual(await outcome(`/sandboxes/${id}/logs`, headers), [400, 'invalid_cursor']);
  }
  assert.deepEqual(await outcome(`/sandboxes/${id}/logs/entries?cursor=abc`), [400, 'invalid_cursor']);
  assert.deepEqual(await outcome(`/sandboxes/${id}/logs?sources=stdin`), [400, 'invalid_request']);
  const missing = '00000000-0000-4000-8000-000000000000';
  assert.deepEqual(await outcome(`/sandboxes/${missing}/logs`), [404, 'sandbox_not_found']);
  assert.deepEqual(await outcome(`/sandboxes/${missing}/logs/entries`), [404, 'sandbox_not_found']);
  assert.deepEqual(await outcome(`/sandboxes/${id}/logs/entries?since=2026-13-45T00:00:00Z`), [
    400,
    'invalid_request',
  ]);
  server.orchestrator.goAway();
  assert.deepEqual(await outcome(`/sandboxes/${id}/logs`), [502, 'orchestrator_unreachable']);
});

test('a client that leaves a stream is not followed any more', async (t) => {
  const { server, id } = await withSandbox(t);
  server.orchestrator.addLog(id, 'stdout', 'one');
  for await (const { data } of followEvents(server, `/sandboxes/${id}/logs`)) {
    assert.equal(data['text'], 'one');
    break;
  }
  await waitUntil(() => server.orchestrator.followers(id) === 0, 'the log is let go of');
});

test('entries are read in pages, from the tail, behind a cursor and within times', async (t) => {
  const { server, id } = await withSandbox(t);
  for (let index = 0; index < 7; index++) server.orchestrator.addLog(id, 'stdout', `line ${index}`);
  const read = async (query: string) => {
    const { status, body } = await server.rest('GET', `/sandboxes/${id}/logs/entries${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body as Page;
  };
  const lines: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Page = await read(`?limit=3${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
    lines.push(...page.data.map((entry) => entry.text));
    assert.equal(page.has_more, page.next_cursor !== null);
    cursor = page.next_cursor;
  }
  assert.deepEqual(
    lines,
    Array.from({ length: 7 }, (_, index) => `line ${index}`),
  );
  const tail = await read('?tail=2');
  assert.deepEqual(
    tail.data.map((entry) => entry.text),
    ['line 5', 'line 6'],
  );
  assert.equal((await read('?since=2999-01-01T00:00:00Z')).data.length, 0);
  assert.equal((await read('?until=1999-01-01T00:00:00%2B02:00')).data.length, 0);
  assert.equal((await read('?since=1999-01-01T00:00:00Z&until=2999-01-01T00:00:00Z')).data.length, 7);
  assert.ok((await read('?sources=system')).data.every((entry) => entry.source === 'system'));
});
