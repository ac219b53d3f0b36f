import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Cgroups } from '../../packages/engine/src/cgroup/cgroups.ts';
import { CLASSES, recordsOf, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const MIB = 1024 * 1024;
const CROWD = { container: 200, gvisor: 10, microvm: 0 };
const AT_ONCE = { container: 16, gvisor: 4, microvm: 1 };

const cgroups = new Cgroups();
let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
});

/** Does it for each, so many at a time. */
async function each<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  act: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const work = async () => {
    for (const [index, item] of queue) results[index] = await act(item);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}

for (const isolation of CLASSES) {
  const count = CROWD[isolation];
  const atOnce = AT_ONCE[isolation];

  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test(`${count} sandboxes live side by side, and nothing is left of them`, async () => {
      const numbers = Array.from({ length: count }, (_, number) => number);
      const sandboxes = await each(numbers, atOnce, (number) =>
        startSandbox(engine, isolation, { env: [{ key: 'NUMBER', value: String(number) }] }),
      );
      const said = await each(
        sandboxes,
        atOnce,
        async (sandbox) => (await sandbox.sh('echo $NUMBER')).stdout,
      );
      assert.deepEqual(
        said,
        numbers.map((number) => `${number}\n`),
      );
      assert.equal(new Set(sandboxes.map(({ view }) => view.address)).size, count);
      const handles = handlesOf(sandboxes);
      assert.equal(handles.length, count);
      await waitUntil(async () => (await engine.client.metrics()).length === count);
      for (const metrics of await engine.client.metrics()) {
        assert.ok(metrics.memoryBytes > 0 && metrics.memoryBytes < metrics.memoryLimitBytes, metrics.id);
        assert.ok(metrics.processes >= 1, metrics.id);
      }
      await each(sandboxes, atOnce, (sandbox) => sandbox.remove());
      assert.deepEqual(await engine.client.listSandboxes(), []);
      assert.deepEqual(await engine.client.metrics(), []);
      assertGone(handles);
    });

    test('metrics say what a sandbox uses', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        resources: { vcpus: 1, memory_mib: 256, disk_size_mib: 256 },
      });
      const metrics = async () => {
        const found = (await engine.client.metrics()).find(({ id }) => id === sandbox.id);
        assert.ok(found);
        return found;
      };
      const first = await metrics();
      assert.equal(first.memoryLimitBytes, 256 * MIB);
      assert.ok(
        first.diskTotalBytes > 200 * MIB && first.diskTotalBytes < 272 * MIB,
        `${first.diskTotalBytes}`,
      );
      const channel = await sandbox.connect();
      const script = `dd if=/dev/zero of=/root/fill bs=1M count=32 conv=fsync; dd if=/dev/zero of=/dev/shm/held bs=1M count=48
        nslookup localhost.invalid > /dev/null; while :; do :; done`;
      await channel.exec({ cmd: '/bin/sh', args: ['-c', script] });
      await waitUntil(
        async () => {
          const now = await metrics();
          return (
            // Of one CPU; a machine that stands still between two looks shows more, once.
            now.cpuPercent > 20 &&
            now.cpuPercent < 150 &&
            now.memoryBytes > first.memoryBytes + 40 * MIB &&
            now.diskUsedBytes > first.diskUsedBytes + 30 * MIB &&
            now.networkSentBytes > first.networkSentBytes &&
            // Counted inside of gVisor, every two seconds.
            now.processes > first.processes
          );
        },
        { what: 'the figures show the work' },
      );
      const busy = await metrics();
      assert.ok(busy.cpuSeconds > first.cpuSeconds);
      assert.ok(busy.memoryBytes <= (256 + 64) * MIB);
      channel.close();
      await waitUntil(async () => (await metrics()).cpuPercent < 5, { what: 'the CPU is idle again' });
      await sandbox.remove();
    });
  });
}

test('an engine that had a crowd leaves nothing behind', async () => {
  await engine.stop();
  assert.deepEqual(await engine.leftovers(), []);
  assert.deepEqual(readdirSync(join(engine.folder, 'sandboxes')), []);
  await engine.launch();
});

function handlesOf(sandboxes: readonly TestSandbox[]): string[] {
  const ids = new Set<string | null>(sandboxes.map(({ id }) => id));
  return recordsOf(engine).flatMap(({ id, handle }) => (ids.has(id) ? [handle] : []));
}

function assertGone(handles: readonly string[]): void {
  const left = new Set(cgroups.list());
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  for (const handle of handles) {
    assert.ok(!left.has(handle), `a cgroup of ${handle}`);
    assert.ok(!mounts.includes(handle), `a mount of ${handle}`);
  }
  for (const folder of [
    join(engine.folder, 'rootfs'),
    join(engine.runFolder, 'guests'),
    join(engine.runFolder, 'rootfs'),
  ]) {
    const names = readdirSync(folder, { recursive: true }).map(String);
    assert.ok(!names.some((name) => handles.some((handle) => name.includes(handle))), folder);
  }
}
