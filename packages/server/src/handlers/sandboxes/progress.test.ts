import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { followEvents } from '../../testing/events.ts';
import { body, startHealthy, until, UNKNOWN_ID } from '../../testing/sandboxes.ts';

test('a start is followed: how much of the image is there, and what became of it', async (t) => {
  const server = await startHealthy(t);
  const slow = body('box', { reference: 'slow' });
  const { id } = (await server.rest('POST', '/sandboxes?start=true', { body: slow })).body;
  await waitUntil(() => server.orchestrator.fetching === 1, 'the fetch');
  const heard: unknown[] = [];
  for await (const { event, data } of followEvents(server, 'GET', `/sandboxes/${id}/progress`)) {
    if (heard.length === 0) server.orchestrator.finishFetching();
    heard.push([event, data]);
  }
  assert.deepEqual(heard[0], ['progress', { message: 'downloading image', done_bytes: 1, total_bytes: 2 }]);
  assert.deepEqual(heard.at(-1), ['end', { status: 'running' }]);
});

test('the stream of a sandbox that does not start has only its state', async (t) => {
  const server = await startHealthy(t);
  const { id } = (await server.rest('POST', '/sandboxes', { body: body('resting') })).body;
  const missing = body('broken', { reference: 'missing' });
  const broken = (await server.rest('POST', '/sandboxes?start=true', { body: missing })).body;
  await until(server, 'broken', 'failed');
  for (const [sandbox, status] of [
    [id, 'created'],
    [broken.id, 'failed'],
  ]) {
    const events = await Array.fromAsync(followEvents(server, 'GET', `/sandboxes/${sandbox}/progress`));
    assert.deepEqual(events, [{ event: 'end', data: { status } }]);
  }
  assert.equal((await server.rest('GET', `/sandboxes/${UNKNOWN_ID}/progress`)).status, 404);
});
