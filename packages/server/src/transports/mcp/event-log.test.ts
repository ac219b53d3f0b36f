import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { EventLog } from './event-log.ts';

test('a client gets what it missed of its own stream, in order', async () => {
  const log = new EventLog();
  const first = await log.storeEvent('a', message(1));
  await log.storeEvent('b', message(2));
  await log.storeEvent('a', message(3));
  await log.storeEvent('a', message(4));
  assert.deepEqual(await replay(log, first), [3, 4]);
  assert.equal(await log.getStreamIdForEventId(first), 'a');
});

test('old messages are forgotten, so that a session has a bound', async () => {
  const log = new EventLog();
  const first = await log.storeEvent('a', message(0));
  for (let id = 1; id <= 1000; id += 1) await log.storeEvent('a', message(id));
  const missed = await replay(log, first);
  assert.deepEqual([missed.length, missed[0], missed.at(-1)], [256, 745, 1000]);
  const big = await log.storeEvent('a', message(1001));
  for (let id = 0; id < 10; id += 1) await log.storeEvent('a', message(id, 'x'.repeat(1 << 20)));
  assert.equal((await replay(log, big)).length, 3);
});

test('an event that never was is refused', async () => {
  await assert.rejects(replay(new EventLog(), 'nonsense'), /no such event/);
});

function message(id: number, text = ''): JSONRPCMessage {
  return { jsonrpc: '2.0', id, result: { text } };
}

async function replay(log: EventLog, after: string): Promise<unknown[]> {
  const seen: unknown[] = [];
  await log.replayEventsAfter(after, {
    send: async (_id, sent) => {
      seen.push('id' in sent ? sent.id : undefined);
      await Promise.resolve();
    },
  });
  return seen;
}
