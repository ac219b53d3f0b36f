import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { waitUntil } from '@svc/contract/testing';
import { readCgroupLayout } from '../../packages/engine/src/cgroup/cgroup-layout.ts';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from './each-runtime.ts';
import { recordsOf, type TestSandbox } from './sandbox-fixture.ts';

const { version, trees } = readCgroupLayout();
/** The trees that runtimes use on this host: beside version 1, one of version 2 is not. */
const USED = trees.filter((tree) => tree.version === version);
const SLOW = { timeoutMs: 60_000 };
const PODS = `/svctest-${process.pid}`;
const EMPTY = /^\s*$/;

let engines: EngineOfEachRuntime;
before(async () => {
  engines = await EngineOfEachRuntime.start();
});
after(async () => {
  await engines[Symbol.asyncDispose]();
  for (const { mountpoint } of trees) if (existsSync(mountpoint + PODS)) rmdirSync(mountpoint + PODS);
});

/** A cgroup as that of a Pod is: in every tree, empty, with the CPUs of the host. */
function makePod(name: string): string {
  for (const { mountpoint, controllers } of trees) {
    for (const path of [PODS, `${PODS}/${name}`]) {
      mkdirSync(mountpoint + path, { recursive: true });
      for (const file of ['cpuset.cpus', 'cpuset.mems'])
        if (
          version === 1 &&
          controllers.includes('cpuset') &&
          EMPTY.test(readFileSync(join(mountpoint + path, file), 'utf8'))
        )
          writeFileSync(join(mountpoint + path, file), readFileSync(join(dirname(mountpoint + path), file)));
    }
  }
  return `${PODS}/${name}`;
}

function removePod(parent: string): void {
  for (const { mountpoint } of trees) rmdirSync(mountpoint + parent);
}

/** The trees in which the sandbox has a cgroup below this parent. */
function treesWith(parent: string, handle: string): readonly string[] {
  return USED.map(({ mountpoint }) => mountpoint).filter((tree) => existsSync(`${tree}${parent}/${handle}`));
}

function processesOf(parent: string, handle: string): readonly string[] {
  const tree = USED.find(({ controllers }) => controllers.includes('pids'));
  const path = `${tree?.mountpoint}${parent}/${handle}/cgroup.procs`;
  return existsSync(path)
    ? readFileSync(path, 'utf8')
        .trim()
        .split('\n')
        .filter((line) => line !== '')
    : [];
}

for (const { name, isolation } of RUNTIMES) {
  describe(`a sandbox in a cgroup of the orchestrator's choice, with ${name}`, { concurrency: false }, () => {
    let parent: string;
    let sandbox: TestSandbox;
    let handle: string;
    before(async () => {
      parent = makePod(name);
      const cpus = { vcpus: 1, memory_mib: 128 };
      sandbox = await engines.start(name, { resources: cpus }, { cgroupParent: parent });
      handle = sandbox.handle;
    });
    after(() => removePod(parent));

    test('has all of its processes there, and none among those of the engine', () => {
      assert.ok(processesOf(parent, handle).length > 0);
      assert.equal(treesWith(parent, handle).length, USED.length);
      assert.deepEqual(treesWith('/svc', handle), []);
    });

    test('is limited there, and is measured', async () => {
      const file = version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
      const tree = USED.find(({ controllers }) => controllers.includes('memory'));
      const limit = Number(readFileSync(`${tree?.mountpoint}${parent}/${handle}/${file}`, 'utf8'));
      assert.ok(limit >= 128 * 2 ** 20 && limit < 512 * 2 ** 20, String(limit));
      if (isolation === 'container') {
        const ran = await sandbox.run({ cmd: 'tail', args: ['/dev/zero'] });
        assert.deepEqual([ran.code, ran.reason], [-1, 'oom']);
      }
      const { client } = sandbox.engine;
      await waitUntil(
        async () =>
          (await client.metrics()).some(({ id, memoryBytes }) => id === sandbox.id && memoryBytes > 0),
        SLOW,
      );
    });

    test('survives the engine, which finds its cgroup again and removes it', async () => {
      await sandbox.engine.restart();
      assert.equal((await sandbox.sh('echo here')).stdout, 'here\n');
      await sandbox.engine.client.stopSandbox(sandbox.id, { graceMs: 0 });
      assert.deepEqual(treesWith(parent, handle), []);
      assert.ok(
        USED.every(({ mountpoint }) => existsSync(mountpoint + parent)),
        'the parent stays',
      );
    });

    test('starts again there, and not without its parent', async () => {
      const { client } = sandbox.engine;
      await client.startSandbox(sandbox.id);
      assert.ok(processesOf(parent, handle).length > 0);
      await client.stopSandbox(sandbox.id, { graceMs: 0 });
      removePod(parent);
      await assert.rejects(
        client.startSandbox(sandbox.id),
        (error) =>
          PlatformError.is(error, 'start_failed') &&
          /^cgroupParent: \S+ is no cgroup of this host/.test(error.message),
      );
      makePod(name);
    });

    test('leaves no process there when its record was removed and the engine killed', async () => {
      const { engine } = sandbox;
      await engine.client.startSandbox(sandbox.id);
      assert.ok(processesOf(parent, handle).length > 0);
      assert.ok(recordsOf(engine).some((record) => record.handle === handle));
      await engine.kill();
      rmSync(join(engine.folder, 'sandboxes', handle), { recursive: true });
      await engine.launch();
      await waitUntil(() => treesWith(parent, handle).length === 0, SLOW);
    });
  });
}

test('a parent that does not exist, or is of the engine, is refused by name', async () => {
  for (const [cgroupParent, reason] of [
    [`${PODS}/none`, /is no cgroup of this host/],
    ['/svc', /must not be in \/svc/],
    ['../x', /must be the path of a cgroup/],
  ] as const)
    await assert.rejects(
      engines.start('runc', {}, { cgroupParent }),
      (error) =>
        PlatformError.is(error, 'invalid_sandbox_config') &&
        error.details?.['field'] === 'cgroupParent' &&
        reason.test(error.message),
    );
});
