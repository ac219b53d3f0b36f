import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { ChannelClient, ChannelError, PlatformError } from '@svc/contract';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { createFakeAgent } from '../testing/fake-agent.ts';
import { ChannelPool } from './channel-pool.ts';

function countingPool() {
  const opened: string[] = [];
  const pool = new ChannelPool(async (sandboxId, signal) => {
    opened.push(sandboxId);
    return await ChannelClient.connect(socketTransport(createFakeAgent({}, '/')), { signal });
  });
  return { pool, opened };
}

test('callers share one channel per sandbox', async () => {
  const { pool, opened } = countingPool();
  const [one, two, other] = await Promise.all([pool.get('a'), pool.get('a'), pool.get('b')]);
  assert.equal(one, two);
  assert.notEqual(one, other);
  assert.deepEqual(opened, ['a', 'b']);
  pool.close();
});

test('a channel that ended is opened again by the next caller', async () => {
  const { pool, opened } = countingPool();
  const first = await pool.get('a');
  first.close();
  await first.closed;
  await waitUntil(async () => (await pool.get('a')) !== first);
  pool.forget('a');
  await pool.get('a');
  assert.deepEqual(opened, ['a', 'a', 'a']);
  pool.close();
});

test('forgetting a sandbox ends its channel', async () => {
  const { pool } = countingPool();
  const channel = await pool.get('a');
  pool.forget('a');
  pool.forget('never seen');
  assert.ok((await channel.closed) instanceof ChannelError);
});

test('a sandbox that does not answer is said not to, and is asked again next time', async () => {
  let asked = 0;
  const pool = new ChannelPool(async () => {
    asked += 1;
    return await Promise.reject(new ChannelError('timeout', 'The sandbox did not answer'));
  });
  for (const _ of [1, 2]) {
    await assert.rejects(pool.get('a'), (error) => PlatformError.is(error, 'unavailable'));
  }
  assert.equal(asked, 2);
});

test('errors of the orchestrator are passed on unchanged', async () => {
  const reason = new PlatformError('sandbox_not_running', 'it is stopped');
  const pool = new ChannelPool(async () => await Promise.reject(reason));
  await assert.rejects(pool.get('a'), reason);
});
