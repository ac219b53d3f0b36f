import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Slot } from './network.ts';
import { PreparedSlots } from './prepared-slots.ts';

const never = new AbortController().signal;

/** Makes slots when told to, so that a test decides what happens meanwhile. */
function workshop(t: TestContext, target: number) {
  const orders: { finish: () => void; fail: (error: Error) => void }[] = [];
  const removed: string[] = [];
  const warnings: string[] = [];
  let made = 0;
  const slots = new PreparedSlots({
    target,
    make: () =>
      new Promise<Slot>((resolve, reject) => {
        const slot = { key: `slot${++made}`, userNamespace: '', networkNamespace: '', idBase: 0, link: null };
        orders.push({ finish: () => resolve(slot), fail: reject });
      }),
    remove: async ({ key }) => void removed.push(key),
    logger: { warn: (_: unknown, text?: string) => void warnings.push(text ?? '') },
  });
  t.after(async () => {
    for (const { finish } of orders) finish();
    await slots.close(new Error('the test is over'));
  });
  return { slots, orders, removed, warnings };
}

test('slots are made ahead, four at a time, up to the target', async (t) => {
  const { orders } = workshop(t, 6);
  assert.equal(orders.length, 4);
  for (const { finish } of orders.splice(0)) finish();
  await waitUntil(() => orders.length === 2);
  for (const { finish } of orders.splice(0)) finish();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(orders.length, 0);
});

test('waiting callers get finished slots in order, and each slot goes to one caller', async (t) => {
  const { slots, orders } = workshop(t, 0);
  const taken = [slots.take(never), slots.take(never)];
  for (const { finish } of orders) finish();
  assert.deepEqual(
    (await Promise.all(taken)).map(({ key }) => key),
    ['slot1', 'slot2'],
  );
});

test('a failure reaches one that waits; the others get theirs', async (t) => {
  const { slots, orders } = workshop(t, 0);
  const [first, second] = [slots.take(never), slots.take(never)];
  orders[0]?.fail(new Error('no luck'));
  await assert.rejects(first, /no luck/);
  orders[1]?.finish();
  assert.equal((await second).key, 'slot2');
});

test('a failure without a waiting caller is a warning, and the next caller tries again at once', async (t) => {
  const { slots, orders, warnings } = workshop(t, 1);
  orders[0]?.fail(new Error('no luck'));
  await waitUntil(() => warnings.length === 1);
  assert.equal(orders.length, 1, 'there is a pause');
  const taken = slots.take(never);
  assert.ok(orders.length > 1);
  for (const { finish } of orders) finish();
  assert.ok(await taken);
});

test('a slot made for a caller that gave up goes to the next caller', async (t) => {
  const { slots, orders } = workshop(t, 0);
  const impatient = new AbortController();
  const given = slots.take(impatient.signal);
  impatient.abort(new Error('too slow'));
  await assert.rejects(given, /too slow/);
  orders[0]?.finish();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await slots.take(never)).key, 'slot1');
});

test('close rejects waiting callers and removes every slot that was not taken', async (t) => {
  const { slots, orders, removed } = workshop(t, 2);
  orders[0]?.finish();
  await new Promise((resolve) => setImmediate(resolve));
  const taken = [slots.take(never), slots.take(never)];
  const waiting = assert.rejects(taken[1] ?? Promise.resolve(), /closing/);
  const closing = slots.close(new Error('closing'));
  for (const { finish } of orders) finish();
  await closing;
  await waiting;
  const kept = (await taken[0])?.key ?? '';
  assert.ok(removed.length >= 1 && !removed.includes(kept));
  assert.equal(removed.length + 1, orders.length, 'each was handed out or removed');
});
