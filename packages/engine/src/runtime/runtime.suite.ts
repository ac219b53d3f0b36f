import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract/errors';
import type { Runtime, RuntimeSpec } from './runtime.ts';
import { GuestControl } from '../testing/guest-control.ts';
import { nothingLeft, type RuntimeWorld } from '../testing/runtime-world.ts';

/** The meaning of the port `Runtime`: every adapter, and the fake, runs it. */
export function runtimeSuite(name: string, createWorld: () => Promise<RuntimeWorld>): void {
  suite(`${name} as a runtime`, { timeout: 280_000 }, () => {
    let world: RuntimeWorld;
    let runtime: Runtime;
    before(async () => {
      world = await createWorld();
      runtime = world.open();
    });
    after(() => world.close());

    const deadline = () => AbortSignal.timeout(100_000);
    async function listen(spec: RuntimeSpec): Promise<GuestControl> {
      const control = await GuestControl.listen(spec);
      world.defer(() => control.close());
      world.defer(() => runtime.remove(spec.handle));
      return control;
    }
    async function started(changes: Partial<RuntimeSpec> = {}) {
      const spec = await world.spec(changes);
      const control = await listen(spec);
      await runtime.start(spec, deadline());
      await control.connected();
      return { spec, handle: spec.handle, control };
    }

    test('the probe starts a sandbox for real and says which version runs', async () => {
      const probe = await runtime.probe(deadline());
      assert.equal(probe.usable, true, probe.reason);
      assert.match(probe.version ?? '', /\d/);
      assert.ok(probe.reason.includes(probe.version ?? 'no version'), probe.reason);
      assert.deepEqual(await runtime.list(), []);
    });

    test('a started sandbox is alive, listed, and dials its engine with its token', async () => {
      const { handle } = await started();
      assert.equal(await runtime.isAlive(handle), true);
      assert.deepEqual(await runtime.list(), [handle]);
      await runtime.remove(handle);
    });

    test('an unknown sandbox is not alive, and killing and removing it succeed', async () => {
      assert.equal(await runtime.isAlive('unknown'), false);
      await runtime.kill('unknown');
      await runtime.remove('unknown');
    });

    test('a sandbox whose PID 1 has ended is not alive but listed until it is removed', async () => {
      const { handle, control } = await started();
      control.shutDown();
      await waitUntil(async () => !(await runtime.isAlive(handle)), 'PID 1 has ended');
      assert.deepEqual(await runtime.list(), [handle]);
      await runtime.remove(handle);
      assert.deepEqual(await runtime.list(), []);
    });

    test('kill ends the sandbox at once and can be repeated', async () => {
      const { handle, control } = await started();
      await runtime.kill(handle);
      assert.equal(await runtime.isAlive(handle), false);
      await waitUntil(() => !control.isConnected, 'the connection is gone');
      await runtime.kill(handle);
      assert.deepEqual(await runtime.list(), [handle]);
      await runtime.remove(handle);
    });

    test('remove leaves nothing and can be repeated', async () => {
      const { spec, handle } = await started();
      await runtime.remove(handle);
      assert.equal(await runtime.isAlive(handle), false);
      assert.deepEqual(await runtime.list(), []);
      await nothingLeft(world, spec);
      await runtime.remove(handle);
    });

    test('a sandbox outlives the adapter that started it; a later one finds, kills and removes it', async () => {
      const { spec, handle } = await started();
      const later = world.open();
      assert.deepEqual(await later.list(), [handle]);
      assert.equal(await later.isAlive(handle), true);
      await later.kill(handle);
      assert.equal(await later.isAlive(handle), false);
      assert.equal(await runtime.isAlive(handle), false);
      await later.remove(handle);
      await nothingLeft(world, spec);
    });

    for (const [what, changes] of [
      ['root file system', { rootfs: '/nonexistent/rootfs' }],
      ['source of a mount', { mounts: [{ ...PLAIN_MOUNT, source: '/nonexistent/source' }] }],
    ] as const) {
      test(`a start without the ${what} fails with a reason, shows no host path, and leaves nothing`, async () => {
        const spec = await world.spec(changes);
        const error: unknown = await runtime.start(spec, deadline()).catch((reason: unknown) => reason);
        assert.ok(PlatformError.is(error, 'start_failed'), String(error));
        assert.match(String(error.details?.['reason']), /\w{4}/);
        assert.doesNotMatch(error.message, /nonexistent/);
        assert.deepEqual(await runtime.list(), []);
        await nothingLeft(world, spec);
      });
    }

    test('a start that is given up at any moment leaves nothing', async () => {
      for (const afterMs of [0, 1, 4, 8, 12, 16, 20, 30, 60, 100]) {
        const spec = await world.spec();
        const outcome = await runtime.start(spec, AbortSignal.timeout(afterMs)).then(
          () => 'started',
          (error: unknown) => (error as Error).name,
        );
        assert.ok(['started', 'TimeoutError'].includes(outcome), outcome);
        if (outcome === 'started') await runtime.remove(spec.handle);
        assert.deepEqual(await runtime.list(), [], `given up after ${afterMs} ms`);
        await nothingLeft(world, spec, `given up after ${afterMs} ms`);
      }
    });

    test('a handle in use is refused and its sandbox stays', async () => {
      const { handle, spec } = await started();
      await assert.rejects(runtime.start(spec, deadline()));
      assert.equal(await runtime.isAlive(handle), true);
      await runtime.remove(handle);
      await runtime.start(spec, deadline());
      assert.equal(await runtime.isAlive(handle), true, 'the handle is free again after remove');
      await runtime.remove(handle);
    });

    test('sandboxes start and go side by side', async () => {
      const sandboxes = await Promise.all(Array.from({ length: 4 }, () => started()));
      const handles = sandboxes.map(({ handle }) => handle).sort();
      assert.deepEqual([...(await runtime.list())].sort(), handles);
      await runtime.remove(handles[0] ?? '');
      assert.deepEqual(await Promise.all(handles.map((handle) => runtime.isAlive(handle))), [
        false,
        true,
        true,
        true,
      ]);
      await Promise.all(handles.map((handle) => runtime.remove(handle)));
      for (const { spec } of sandboxes) await nothingLeft(world, spec);
    });
  });
}

const PLAIN_MOUNT = {
  destination: '/data',
  sizeMib: null,
  owner: null,
  readonly: false,
  noexec: false,
  nosuid: true,
  nodev: true,
} as const;
