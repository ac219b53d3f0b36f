import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { Fault } from '../testing/fault.ts';
import { pretend } from '../testing/pretended-host.ts';
import { Sandboxes } from './sandboxes.ts';

const SPEC = { image: { type: 'oci', reference: 'x' } } as const;
/** Long enough for a start that does not wait. */
const MOMENT_MS = 50;

test('concurrent starts are shared fairly between organizations; a caller that leaves and a removal cancel a waiting start', async (t) => {
  const host = await pretend(t);
  const gate = Promise.withResolvers<void>();
  const started: string[] = [];
  // The host has four places.
  const kit = host.kit(new Fault(Infinity, 'before'));
  const held = {
    ...kit,
    tuning: {
      quickMoves: {
        hold: () => {
          started.push('one');
          return { [Symbol.dispose]: () => {} };
        },
      },
      raiseKernelPriority: () => {},
    },
    network: new Proxy(host.network, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const call = async (...args: unknown[]): Promise<unknown> => {
          await gate.promise;
          return await (Reflect.apply(value, target, args) as Promise<unknown>);
        };
        return name === 'acquire' ? call : (value.bind(target) as unknown);
      },
    }),
  };
  const sandboxes = new Sandboxes(held, { warm: [], warmAdaptive: 0 });
  const leaving = new AbortController();
  const begin = (id: string, imageScope: string, signal = AbortSignal.timeout(100_000)) => {
    const made = sandboxes.create({ id, spec: SPEC, start: true, imageScope }, () => {}, signal);
    made.catch(() => undefined);
    return made;
  };
  const first = [begin('a1', 'a'), begin('a2', 'a')];
  await waitUntil(() => started.length === 2, 'two starts');
  const [removed, left, third] = [begin('a3', 'a'), begin('a4', 'a', leaving.signal), begin('a5', 'a')];
  await delay(MOMENT_MS);
  assert.equal(started.length, 2, 'the third waits');
  const other = begin('b1', 'b');
  await waitUntil(() => started.length === 3, 'the other organization is started next');
  await sandboxes.remove('a3');
  await assert.rejects(removed, { code: 'sandbox_not_found' });
  leaving.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  assert.throws(() => sandboxes.get('a4'), { code: 'sandbox_not_found' });
  assert.equal(started.length, 3);
  gate.resolve();
  const views = await Promise.all([...first, other, third]);
  assert.deepEqual(
    views.map(({ state }) => state),
    ['running', 'running', 'running', 'running'],
  );
  for (const id of ['a1', 'a2', 'a5', 'b1']) await sandboxes.remove(id);
  assert.deepEqual(await host.leftovers(), []);
});
