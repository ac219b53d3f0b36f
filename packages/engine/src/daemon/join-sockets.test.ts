import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { joinSuite, pair } from '../testing/join.suite.ts';
import { joinSockets } from './join-sockets.ts';

joinSuite(async (one, other) => {
  joinSockets(one, other);
  await Promise.resolve();
});

test('whoever wants to know is told before what one side says is written to the other, and of nothing else', async () => {
  const one = await pair();
  const other = await pair();
  let told = 0;
  one.far.write('early');
  await once(one.near, 'readable');
  await setImmediate();
  joinSockets(one.near, other.near, () => told++);
  for (const [index, text] of ['early', 'late', 'later'].entries()) {
    if (index > 0) one.far.write(text);
    const [seen] = (await once(other.far, 'data')) as [Buffer];
    assert.deepEqual([seen.toString('utf8'), told], [text, index + 1]);
  }
  other.far.write('back');
  await once(one.far, 'data');
  assert.equal(told, 3);
});
