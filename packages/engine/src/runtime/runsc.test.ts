import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { eldestOf } from './process-identity.ts';
import { runsc } from './runsc.ts';
import { runtimeSuite } from './runtime.suite.ts';
import { GuestControl } from '../testing/guest-control.ts';
import { realWorld } from '../testing/real-world.ts';
import { wakeOrders } from '../testing/wake-orders.ts';

runtimeSuite('runsc', () => realWorld(runsc));

test('the kernel of a sandbox goes before its processes, which wait for their turn, also those that come later', async (t) => {
  const world = await realWorld(runsc);
  t.after(() => world.close());
  const [spec, runtime] = [await world.spec(), world.open()];
  const control = await GuestControl.listen(spec);
  world.defer(() => control.close());
  world.defer(() => runtime.remove(spec.handle));
  await runtime.start(spec, AbortSignal.timeout(100_000));
  await control.connected();
  const order = () => {
    const all = world.cgroups.processIds(spec.handle);
    const kernel = eldestOf(all);
    const others = all.filter((pid) => !kernel.includes(pid));
    const policies = new Set(wakeOrders(others).map((text) => text.split(' ')[0]));
    return { kernel, count: others.length, first: wakeOrders(kernel), rest: [...policies] };
  };
  const before = order();
  // gVisor's own, and the one that serves it files.
  assert.equal(before.kernel.length, 2);
  assert.deepEqual([before.first, before.rest], [['0 -10'], ['3']]);
  await control.run('for i in 1 2 3; do sleep 60 > /dev/null 2>&1 & done; (exit 0)');
  const after = order();
  assert.ok(after.count > before.count, `${after.count} processes, ${before.count} before`);
  assert.deepEqual([after.first, after.rest], [['0 -10'], ['3']]);

  // The state that an engine leaves when it is killed during a start.
  for (const pid of before.kernel)
    execFileSync('chrt', ['--batch', '--all-tasks', '--pid', '0', String(pid)]);
  assert.deepEqual(order().first, ['3 -10']);
  await world.open().settle(spec.handle);
  assert.deepEqual(order().first, ['0 -10']);
  await runtime.remove(spec.handle);
  await world.open().settle(spec.handle);
});
