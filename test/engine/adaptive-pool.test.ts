import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Cgroups } from '../../packages/engine/src/cgroup/cgroups.ts';
import { CLASSES, recordsOf, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

const MAX = 2;
const cgroups = new Cgroups();

let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start({ args: ['--warm-adaptive', String(MAX)] });
});
after(async () => {
  await engine.destroy();
});

/** So that one that failed is the only one that fails. */
afterEach(async () => {
  for (const { id } of await engine.client.listSandboxes()) await engine.client.removeSandbox(id);
});

/** Handles of the sandboxes that are started and not yet taken. */
function waiting(): string[] {
  return recordsOf(engine)
    .filter(({ id, state }) => id === null && state === 'running')
    .map(({ handle }) => handle);
}

/** Nothing more is going to be started: as many wait as there are places. */
async function untilFull(): Promise<string[]> {
  await waitUntil(async () => (await engine.client.pool()).waiting.length === MAX, {
    what: 'the pool is full',
  });
  return waiting();
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a requested kind is prepared for the next caller, of the same size and with all of its spec', async () => {
      const resources = { vcpus: 1, memory_mib: 200 };
      const first = await startSandbox(engine, isolation, { resources });
      const likely = async () =>
        (await engine.client.pool()).waiting.filter(
          (one) => one.isolation === isolation && one.memoryMib === 200,
        );
      await waitUntil(async () => (await likely()).length > 0, { what: 'one waits' });
      const prepared = waiting();
      assert.deepEqual(
        (await engine.client.listSandboxes()).map(({ id }) => id),
        [first.id],
        'waiting sandboxes are not listed',
      );
      const next = await startSandbox(engine, isolation, {
        resources,
        env: [{ key: 'OWN', value: 'value' }],
      });
      assert.ok(prepared.includes(next.handle));
      // In gVisor one has run there already, so that the caller's first is as quick as their second. The kernel that a container
      // shares has counted the threads of runc before it, as many as there happened to be.
      if (isolation === 'gvisor') assert.equal((await nextPid(next)) - (await nextPid(first)), 1);
      assert.equal((await next.sh('echo $OWN')).stdout, 'value\n');
      const limit = cgroups.memoryLimitBytes(next.handle) ?? 0;
      assert.equal(limit / 2 ** 20, 200 + (isolation === 'gvisor' ? 64 : 0));
      const other = await startSandbox(engine, isolation, { resources: { vcpus: 1, memory_mib: 136 } });
      assert.ok(!prepared.includes(other.handle), 'another size is started for itself');
      for (const sandbox of [first, next, other]) await sandbox.remove();
    });

    test('no sandbox is handed out twice', async () => {
      const made = await Promise.all(Array.from({ length: 6 }, () => startSandbox(engine, isolation)));
      await untilFull();
      const again = await Promise.all(Array.from({ length: 6 }, () => startSandbox(engine, isolation)));
      const handles = [...made, ...again].map(({ handle }) => handle);
      assert.equal(new Set(handles).size, 12);
      await Promise.all([...made, ...again].map((sandbox) => sandbox.remove()));
    });

    test('kill -9 of the engine removes the pool, and keeps taken sandboxes', async () => {
      const first = await startSandbox(engine, isolation);
      await untilFull();
      const taken = await startSandbox(engine, isolation);
      const orphans = await untilFull();
      await engine.restart();
      for (const handle of orphans) {
        assert.deepEqual(cgroups.processIds(handle), []);
        assert.ok(!readdirSync(join(engine.folder, 'sandboxes')).includes(handle));
      }
      assert.equal((await new TestSandbox(engine, taken.view).sh('echo stays')).stdout, 'stays\n');
      assert.deepEqual((await engine.client.pool()).waiting, [], 'no request has reached this engine');
      for (const sandbox of [first, taken]) await sandbox.remove();
    });
  });
}

test('an image of waiting sandboxes can be removed, and leaves nothing behind', async () => {
  const sandbox = await startSandbox(engine, 'container');
  const [handle = ''] = await waitUntilSome();
  await sandbox.remove();
  await engine.client.images.removeImage(BUSYBOX);
  assert.deepEqual((await engine.client.pool()).waiting, []);
  assert.deepEqual(waiting(), []);
  assert.ok(!cgroups.list().includes(handle));
  await engine.importBusybox();
});

test('an engine that stops removes its waiting sandboxes', async () => {
  const sandbox = await startSandbox(engine, 'container');
  const handles = await waitUntilSome();
  await sandbox.remove();
  await engine.stop();
  assert.deepEqual(await engine.leftovers(), []);
  for (const handle of handles) assert.ok(!cgroups.list().includes(handle));
  await engine.launch();
});

async function nextPid(sandbox: TestSandbox): Promise<number> {
  return Number((await sandbox.sh('echo $$')).stdout);
}

async function waitUntilSome(): Promise<string[]> {
  await waitUntil(async () => (await engine.client.pool()).waiting.length > 0, { what: 'one waits' });
  return waiting();
}
