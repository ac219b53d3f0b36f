import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { pino } from 'pino';
import { joinSuite, pair } from '../testing/join.suite.ts';
import { SessionRelay } from './session-relay.ts';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';

const logger = pino({ level: 'silent' });
const relay = new SessionRelay(BUILT_SVC_HOST, logger);
after(() => relay.close());

joinSuite(async (one, other) => assert.ok(await relay.join(one, other, () => {})));

test('a caller who says something after a silence is told of once, a guest never', async () => {
  const { one, other, told } = await joined();
  for (const text of ['a', 'b', 'c']) {
    one.far.write(text);
    await once(other.far, 'data');
  }
  other.far.write('back');
  await once(one.far, 'data');
  await waitUntil(() => told.count > 0);
  assert.equal(told.count, 1);
  // Longer than it is silent about one that goes on.
  await delay(100);
  one.far.write('d');
  await once(other.far, 'data');
  await waitUntil(() => told.count === 2);
});

test('what a guest said last reaches a caller that is slow, and then the end', async () => {
  const { one, other } = await joined();
  const sent = Buffer.alloc(2 * 1024 * 1024, 'x');
  other.far.end(sent);
  await once(one.far, 'readable');
  await delay(50);
  let length = 0;
  for await (const chunk of one.far) length += (chunk as Buffer).length;
  assert.equal(length, sent.length);
  await waitUntil(() => one.near.destroyed && other.near.destroyed);
});

test('what a guest said last reaches the caller although it takes nothing any more', async () => {
  const { one, other } = await joined();
  // Only what it says is left of it: whatever is written to it fails.
  other.far.write('last words');
  other.far.destroySoon();
  one.far.write('anybody there?');
  const chunks = (await Array.fromAsync(one.far)) as Buffer[];
  assert.equal(Buffer.concat(chunks).toString(), 'last words');
});

test('guests that flood, a caller that reads them and one that does not, hold up nobody else', async () => {
  const [read, unread, quiet] = [await joined(), await joined(), await joined()];
  const piece = Buffer.alloc(256 * 1024);
  for (const { other } of [read, unread]) {
    const flood = (): void => {
      while (other.far.write(piece)) continue;
    };
    other.far.on('drain', flood).on('error', () => undefined);
    flood();
  }
  let flooded = 0;
  read.one.far.on('data', (chunk: Buffer) => void (flooded += chunk.length));
  unread.one.far.pause();
  for (let round = 0; round < 50; round++) {
    const before = flooded;
    quiet.one.far.write('ping');
    assert.equal(String(await once(quiet.other.far, 'data')), 'ping');
    quiet.other.far.write('pong');
    assert.equal(String(await once(quiet.one.far, 'data')), 'pong');
    await waitUntil(() => flooded > before, { what: 'the flood goes on' });
  }
});

test('the guest sees the end of a caller after its owner was told', async () => {
  const { one, other } = await joined();
  const order: string[] = [];
  one.near.once('close', () => order.push('told'));
  const ended = once(other.far, 'end').then(() => order.push('guest'));
  other.far.resume();
  one.far.end();
  await ended;
  assert.deepEqual(order, ['told', 'guest']);
});

test('when the helper is killed, what it joined ends, and another one is there for the next', async () => {
  const { one, other } = await joined();
  process.kill(relay.pid ?? 0, 'SIGKILL');
  await Promise.all([once(one.near, 'close'), once(other.near, 'close')]);
  assert.equal(await relay.join(...(await nearPair()), () => {}), false);
  await waitUntil(() => relay.pid !== undefined);
  const next = await joined();
  next.one.far.write('again');
  await once(next.other.far, 'data');
});

test('a helper that was stopped is replaced at the second look', async () => {
  const { one } = await joined();
  process.kill(relay.pid ?? 0, 'SIGSTOP');
  await waitUntil(() => {
    relay.look();
    return one.near.destroyed;
  });
});

test('sockets of which the program is not told are not joined, and are as they were', async () => {
  const without = new SessionRelay('/nonexistent/svc-host', logger);
  const [one, other] = [await pair(), await pair()];
  assert.equal(await without.join(one.near, other.near, () => {}), false);
  one.far.write('still there');
  one.near.resume();
  const [seen] = (await once(one.near, 'data')) as [Buffer];
  assert.equal(seen.toString(), 'still there');
  without.close();
});

test('sockets that are destroyed while the helper is asked end, and nothing else does', async () => {
  await joined();
  const [one, other, third] = [await pair(), await pair(), await pair()];
  const asked = relay.join(one.near, other.near, () => {});
  one.near.destroy();
  assert.equal(await asked, false);
  other.far.resume();
  await Promise.all([once(other.far, 'end'), waitUntil(() => other.near.destroyed)]);
  third.far.write('mine');
  third.near.resume();
  const [seen] = (await once(third.near, 'data')) as [Buffer];
  assert.equal(seen.toString(), 'mine');
});

async function joined() {
  const [one, other] = [await pair(), await pair()];
  const told = { count: 0 };
  while (!(await relay.join(one.near, other.near, () => told.count++))) await delay(5);
  return { one, other, told };
}

async function nearPair() {
  return [(await pair()).near, (await pair()).near] as const;
}
