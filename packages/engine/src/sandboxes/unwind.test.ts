import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxSpec } from '@svc/contract';
import { FakeNetwork } from '../testing/fake-network.ts';
import type { FakeRuntime } from '../testing/fake-runtime.ts';
import { Fault } from '../testing/fault.ts';
import { pretend, type PretendedHost } from '../testing/pretended-host.ts';
import { Sandboxes } from './sandboxes.ts';

const SPEC: SandboxSpec = {
  image: { type: 'oci', reference: 'x' },
  mounts: [{ type: 'named', name: 'data', guest: '/data' }],
};

for (const when of ['before', 'after'] as const) {
  test(`a create that fails ${when} any step leaves nothing behind`, async (t) => {
    let steps = 0;
    for (let failAt = 1; failAt < 100; failAt++) {
      const host = await pretend(t);
      const fault = new Fault(failAt, when);
      const sandboxes = new Sandboxes(host.kit(fault), { warm: [], warmAdaptive: 0 });
      const signal = AbortSignal.timeout(100_000);
      const outcome = await sandboxes
        .create({ id: 'one', spec: SPEC, start: true }, () => {}, signal)
        .then(
          () => 'created',
          () => 'failed',
        );
      if (!fault.wasInjected) {
        assert.equal(outcome, 'created');
        await sandboxes.remove('one');
        assert.deepEqual(await host.leftovers(), [], 'a removed sandbox leaves nothing');
        steps = failAt - 1;
        break;
      }
      assert.equal(outcome, 'failed', `step ${failAt} failed without an error`);
      assert.deepEqual(await host.leftovers(), [], `left when step ${failAt} failed`);
      assert.throws(() => sandboxes.get('one'), { code: 'sandbox_not_found' });
      await host.volumes.remove('data');
    }
    assert.ok(steps >= 9, `only ${steps} steps were seen to fail`);
  });
}

/** A host with a snapshot of a sandbox that is gone. */
async function pretendWithSnapshot(t: TestContext): Promise<PretendedHost> {
  const host = await pretend(t);
  const sandboxes = new Sandboxes(host.kit(new Fault(Infinity, 'before')), { warm: [], warmAdaptive: 0 });
  const signal = AbortSignal.timeout(100_000);
  await sandboxes.create({ id: 'origin', spec: SPEC }, () => {}, signal);
  await sandboxes.snapshot({ id: 'kept', sandboxId: 'origin' }, signal);
  await sandboxes.remove('origin');
  return host;
}

for (const when of ['before', 'after'] as const) {
  test(`a create from a snapshot that fails ${when} any step leaves nothing but the snapshot`, async (t) => {
    let steps = 0;
    for (let failAt = 1; failAt < 100; failAt++) {
      const host = await pretendWithSnapshot(t);
      const before = await host.leftovers();
      const fault = new Fault(failAt, when);
      const sandboxes = new Sandboxes(host.kit(fault), { warm: [], warmAdaptive: 0 });
      const request = { id: 'one', spec: SPEC, start: true, snapshot: 'kept' };
      const outcome = await sandboxes
        .create(request, () => {}, AbortSignal.timeout(100_000))
        .then(
          () => 'created',
          () => 'failed',
        );
      if (!fault.wasInjected) {
        assert.equal(outcome, 'created');
        await sandboxes.remove('one');
        assert.deepEqual(await host.leftovers(), before, 'a removed sandbox leaves the snapshot alone');
        steps = failAt - 1;
        break;
      }
      assert.equal(outcome, 'failed', `step ${failAt} failed without an error`);
      assert.deepEqual(await host.leftovers(), before, `left when step ${failAt} failed`);
      assert.throws(() => sandboxes.get('one'), { code: 'sandbox_not_found' });
      // Without readers it is removed as a whole.
      await host.snapshots.remove('kept');
      assert.deepEqual(await host.leftovers(), []);
    }
    assert.ok(steps >= 9, `only ${steps} steps were seen to fail`);
  });

  test(`a snapshot that fails ${when} any step leaves the sandbox and nothing else`, async (t) => {
    let steps = 0;
    for (let failAt = 1; failAt < 100; failAt++) {
      const host = await pretend(t);
      const signal = AbortSignal.timeout(100_000);
      const working = new Sandboxes(host.kit(new Fault(Infinity, 'before')), { warm: [], warmAdaptive: 0 });
      await working.create({ id: 'one', spec: SPEC, start: true }, () => {}, signal);
      await working.stop('one');
      const before = await host.leftovers();
      const fault = new Fault(failAt, when);
      const sandboxes = new Sandboxes(host.kit(fault), { warm: [], warmAdaptive: 0 });
      await sandboxes.recover();
      const outcome = await sandboxes.snapshot({ id: 'kept', sandboxId: 'one' }, signal).then(
        () => 'made',
        () => 'failed',
      );
      if (!fault.wasInjected) {
        assert.equal(outcome, 'made');
        steps = failAt - 1;
        break;
      }
      assert.equal(outcome, 'failed', `step ${failAt} failed without an error`);
      assert.deepEqual(await host.leftovers(), before, `left when step ${failAt} failed`);
      assert.throws(() => host.snapshots.get('kept'), { code: 'snapshot_not_found' });
      assert.ok(!host.snapshots.isImageInUse('sha256:1'));
      await sandboxes.snapshot({ id: 'kept', sandboxId: 'one' }, signal);
    }
    assert.ok(steps >= 1, `only ${steps} steps were seen to fail`);
  });
}

test('a sandbox that failed to start again can be started once the cause is gone', async (t) => {
  const host = await pretend(t);
  const working = new Sandboxes(host.kit(new Fault(Infinity, 'before')), { warm: [], warmAdaptive: 0 });
  await working.create({ id: 'one', spec: SPEC, start: true }, () => {}, AbortSignal.timeout(100_000));
  await working.stop('one');
  const runtimeBroken = {
    ...host.kit(new Fault(Infinity, 'before')),
    network: new FakeNetwork({ capacity: 0 }),
  };
  const broken = new Sandboxes(runtimeBroken, { warm: [], warmAdaptive: 0 });
  await broken.recover();
  await assert.rejects(broken.start('one'), { code: 'insufficient_capacity' });
  assert.equal(broken.get('one').view().state, 'failed');
  assert.match(broken.get('one').view().end?.message ?? '', /./);
  const again = new Sandboxes(host.kit(new Fault(Infinity, 'before')), { warm: [], warmAdaptive: 0 });
  await again.recover();
  assert.equal((await again.start('one')).state, 'running');
  await again.remove('one');
  assert.deepEqual(await host.leftovers(), []);
});

test('a runtime whose program fails while a start is being undone takes nothing else with it', async (t) => {
  const host = await pretend(t);
  const removed = Promise.withResolvers<void>();
  const ended: string[] = [];
  // As runc does: svc-init is up before the program that started it is done, and ending the one makes the other fail.
  const slow = new Proxy(host.runtime, {
    get: (target, name) => {
      if (name === 'start') {
        return async (...args: Parameters<FakeRuntime['start']>) => {
          await target.start(...args);
          await Promise.race([removed.promise, delay(100)]);
          ended.push('program');
          throw new Error('killed half-way');
        };
      }
      if (name === 'remove') {
        return async (handle: string) => {
          ended.push('sandbox');
          removed.resolve();
          await target.remove(handle);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const sandboxes = new Sandboxes(
    { ...host.kit(new Fault(Infinity, 'before')), runtimes: [slow] },
    { warm: [], warmAdaptive: 0 },
  );
  // The fake guest refuses every command, so the start fails after its hello. Node's test runner fails this test when
  // a rejection is unhandled, which would end the engine.
  const spec: SandboxSpec = { ...SPEC, runtime: { cmd: ['/bin/true'] } };
  await assert.rejects(
    sandboxes.create({ id: 'one', spec, start: true }, () => {}, AbortSignal.timeout(100_000)),
    { code: 'start_failed' },
  );
  assert.equal(ended[0], 'program', 'the runtime was disturbed while its program was still at work');
  assert.deepEqual(await host.leftovers(), []);
});

test('a stop that fails half-way is tried again, and the reason of the first attempt stays', async (t) => {
  const host = await pretend(t);
  let failures = 1;
  const rootfs = new Proxy(host.rootfs, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === 'unmount' && failures-- > 0) throw new Error('busy');
        return await Reflect.apply(value, target, args);
      };
    },
  });
  const kit = { ...host.kit(new Fault(Infinity, 'before')), rootfs };
  const sandboxes = new Sandboxes(kit, { warm: [], warmAdaptive: 0 });
  const spec: SandboxSpec = { ...SPEC, lifecycle: { max_duration_secs: 1 } };
  await sandboxes.create({ id: 'one', spec, start: true }, () => {}, AbortSignal.timeout(100_000));
  const { state } = sandboxes.get('one').view();
  assert.equal(state, 'running');
  const later = Date.now() + 2000;
  for (let tries = 0; sandboxes.get('one').view().state !== 'stopped'; tries++) {
    assert.ok(tries < 6000, `it stays ${sandboxes.get('one').view().state}`);
    sandboxes.enforceDeadlines(later);
    await delay(10);
  }
  assert.ok(failures < 0, 'the fault was never injected');
  assert.equal(sandboxes.get('one').view().end?.reason, 'max_duration');
  await sandboxes.remove('one');
  assert.deepEqual(await host.leftovers(), []);
});
