import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { body, startHealthy } from '../../testing/sandboxes.ts';
import { followEvents } from '../../testing/follow-events.ts';

async function withSandbox(t: Parameters<typeof startHealthy>[0]) {
  const server = await startHealthy(t);
  const query = '?start=true&wait_for=running';
  const { status, body: made } = await server.rest('POST', `/sandboxes${query}`, { body: body('one') });
  assert.equal(status, 200, JSON.stringify(made));
  const id: string = made.id;
  return { server, id, log: server.orchestrator.networkLogOf(id), path: `/sandboxes/${id}/network/log` };
}

test('the log is read in pages, oldest first, as all or as what was denied, with how much is missing', async (t) => {
  const { server, log, path } = await withSandbox(t);
  for (let port = 1; port <= 5; port++) log.add({ port, verdict: port === 3 ? 'allow' : 'deny' });
  log.add({
    kind: 'http',
    decidedBy: 'secret',
    host: 'evil.example',
    secret: { action: 'block_and_log', method: 'GET', path: '/x', envVars: ['KEY'] },
  });
  log.leftOut = 12;
  const ports: number[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { status, body: page } = await server.rest(
      'GET',
      `${path}?limit=2&verdict=deny${cursor === '' ? '' : `&cursor=${cursor}`}`,
    );
    assert.equal(status, 200, JSON.stringify(page));
    assert.equal(page.left_out, 12);
    ports.push(...page.data.map((entry: { port: number }) => entry.port));
    cursor = page.next_cursor;
  }
  assert.deepEqual(ports, [1, 2, 4, 5, 22]);
  const { data } = (await server.rest('GET', path)).body;
  assert.equal(data.length, 6);
  const { first_ts: first, ts, ...last } = data.at(-1);
  assert.ok(first <= ts);
  assert.deepEqual(last, {
    cursor: '6',
    count: 1,
    kind: 'http',
    verdict: 'deny',
    host: 'evil.example',
    address: '10.0.0.1',
    port: 22,
    protocol: 'tcp',
    decided_by: 'secret',
    rule: null,
    reason: 'a test says so',
    secret: { action: 'block_and_log', method: 'GET', path: '/x', env_vars: ['KEY'] },
  });
});

test('a stream has past and new entries, resumes after the last event, and ends with the run', async (t) => {
  const { server, id, log, path } = await withSandbox(t);
  log.add({ port: 1 });
  log.add({ port: 2, verdict: 'allow' });
  const reading = Array.fromAsync(
    followEvents(server, `${path}/stream?verdict=deny`, { 'last-event-id': '1' }),
  );
  await waitUntil(() => log.followers > 0);
  log.add({ port: 3 });
  log.leftOut = 4;
  await server.rest('POST', `/sandboxes/${id}/stop`, { body: {} });
  const events = await reading;
  assert.deepEqual(
    events.map(({ event, id: place, data }) => [event, place, data['port'] ?? data['count'] ?? null]),
    [
      ['decision', '3', 3],
      ['left_out', undefined, 4],
      ['end', undefined, null],
    ],
  );
});

test('a client that leaves is not followed any more', async (t) => {
  const { server, log, path } = await withSandbox(t);
  log.add();
  for await (const { event } of followEvents(server, `${path}/stream`)) {
    assert.equal(event, 'decision');
    break;
  }
  await waitUntil(() => log.followers === 0, 'the log is let go of');
});

test('a bad cursor, a bad verdict and a sandbox that is not there are answers; one that never ran has an empty log', async (t) => {
  const { server, path } = await withSandbox(t);
  const outcome = async (asked: string, headers = {}) => {
    const { status, body: said } = await server.rest('GET', asked, { headers });
    return [status, said.error.code];
  };
  for (const cursor of ['x', '-1', '1.5', '99999999999999999'])
    assert.deepEqual(await outcome(`${path}?cursor=${cursor}`), [400, 'invalid_cursor'], cursor);
  assert.deepEqual(await outcome(`${path}/stream`, { 'last-event-id': 'x' }), [400, 'invalid_cursor']);
  assert.deepEqual(await outcome(`${path}?verdict=maybe`), [400, 'invalid_request']);
  const missing = '/sandboxes/00000000-0000-4000-8000-000000000000/network/log';
  assert.deepEqual(await outcome(missing), [404, 'sandbox_not_found']);
  assert.deepEqual(await outcome(`${missing}/stream`), [404, 'sandbox_not_found']);
  const { body: made } = await server.rest('POST', '/sandboxes', { body: body('never-started') });
  const { body: page } = await server.rest('GET', `/sandboxes/${made.id}/network/log`);
  assert.deepEqual(page, { data: [], has_more: false, next_cursor: null, left_out: 0 });
  server.orchestrator.goAway();
  assert.deepEqual(await outcome(path), [502, 'orchestrator_unreachable']);
});
