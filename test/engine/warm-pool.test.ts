import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Patch } from '@svc/contract';
import { Cgroups } from '../../packages/engine/src/cgroup/cgroups.ts';
import { CLASSES, recordsOf, startSandbox, TestSandbox } from './sandbox-fixture.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

const SIZE = { container: 2, gvisor: 1 } as Record<string, number>;
const cgroups = new Cgroups();

let engine: TestEngine;
before(async () => {
  const args = Object.entries(SIZE).flatMap(([isolation, size]) => [
    '--warm',
    `${BUSYBOX}=${size}@${isolation}`,
  ]);
  engine = await TestEngine.start({ args });
});
after(async () => {
  await engine.destroy();
});

/** Handles of the sandboxes that are started and not yet taken. */
function waiting(isolation: string): string[] {
  return recordsOf(engine)
    .filter(({ id, state, isolation: own }) => id === null && state === 'running' && own === isolation)
    .map(({ handle }) => handle)
    .toSorted();
}

async function untilFull(isolation: string): Promise<string[]> {
  await waitUntil(() => waiting(isolation).length === SIZE[isolation], {
    what: 'the pool is full',
  });
  return waiting(isolation);
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a create takes a sandbox that waits, with all that its spec asks for', async () => {
      const prepared = await untilFull(isolation);
      assert.deepEqual(await engine.client.listSandboxes(), [], 'waiting sandboxes are not listed');
      const sandbox = await startSandbox(
        engine,
        isolation,
        {
          env: [{ key: 'OWN', value: 'value' }],
          labels: { team: 'blue' },
          runtime: { workdir: '/tmp', user: 'user', scripts: { hello: '#!/bin/sh\necho hello\n' } },
          patches: [{ type: 'text', path: '/etc/patched', content: 'patched\n' }],
        },
        { id: `mine-${isolation}` },
      );
      assert.ok(prepared.includes(sandbox.handle));
      const { stdout } = await sandbox.sh('echo $OWN; pwd; id -u; hello; cat /etc/patched');
      assert.equal(stdout, 'value\n/tmp\n1000\nhello\npatched\n');
      const view = await engine.client.getSandbox(`mine-${isolation}`);
      assert.deepEqual([view.state, view.spec.labels], ['running', { team: 'blue' }]);
      await sandbox.remove();
    });

    test('a waiting sandbox gets the host volume of the create that takes it', async () => {
      const prepared = await untilFull(isolation);
      const hostVolume = `host-${isolation}`;
      await engine.client.volumes.createVolume(hostVolume, 16);
      await engine.client.volumes.makeVolumeFolder(hostVolume, 'folder');
      const patches: Patch[] = [{ type: 'copy_dir', src: 'folder', dst: '/copied' }];
      const sandbox = await startSandbox(engine, isolation, { patches }, { hostVolume });
      assert.ok(prepared.includes(sandbox.handle));
      assert.equal((await sandbox.sh('ls -d /copied')).stdout, '/copied\n');
      await sandbox.remove();
      await engine.client.volumes.removeVolume(hostVolume);
    });

    test('the main command of a waiting sandbox starts when it is taken', async () => {
      const prepared = await untilFull(isolation);
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'echo taken; exit 3'] },
      });
      assert.ok(prepared.includes(sandbox.handle));
      await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'failed');
      assert.equal((await engine.client.getSandbox(sandbox.id)).end?.exitCode, 3);
      const entries = await Array.fromAsync(engine.client.logs(sandbox.id), ({ text }) => text);
      assert.deepEqual(entries, ['taken\n']);
      await sandbox.remove();
    });

    test('a spec that needs something else is started for itself', async () => {
      const prepared = await untilFull(isolation);
      const others = await Promise.all([
        startSandbox(engine, isolation, { resources: { memory_mib: 128 } }),
        startSandbox(engine, isolation, { network: { enabled: false } }),
        startSandbox(engine, isolation, { mounts: [{ type: 'tmpfs', guest: '/scratch' }] }),
        startSandbox(engine, isolation, { security_profile: 'restricted' }),
        startSandbox(engine, isolation, { runtime: { hostname: 'named' } }),
      ]);
      for (const sandbox of others) {
        assert.ok(!prepared.includes(sandbox.handle), JSON.stringify(sandbox.view.spec));
        await sandbox.remove();
      }
      assert.deepEqual(waiting(isolation), prepared);
    });

    test('no sandbox is handed out twice, and the pool is filled again', async () => {
      const prepared = await untilFull(isolation);
      const count = isolation === 'container' ? 20 : 4;
      const sandboxes = await Promise.all(
        Array.from({ length: count }, () => startSandbox(engine, isolation)),
      );
      const names = await Promise.all(
        sandboxes.map(async (sandbox) => (await sandbox.sh('hostname')).stdout),
      );
      assert.equal(new Set(names).size, count);
      const addresses = sandboxes.map(({ view }) => view.address);
      assert.equal(new Set(addresses).size, count);
      const handles = new Set(sandboxes.map(({ handle }) => handle));
      assert.equal(handles.size, count);
      for (const handle of prepared) assert.ok(handles.has(handle), 'those that waited were used');
      await Promise.all(sandboxes.map((sandbox) => sandbox.remove()));
      const refilled = await untilFull(isolation);
      assert.ok(refilled.every((handle) => !handles.has(handle)));
    });

    test('a create succeeds also when the waiting sandboxes have just died', async () => {
      const prepared = await untilFull(isolation);
      const living = () => prepared.flatMap((handle) => cgroups.processIds(handle));
      await waitUntil(() => {
        for (const pid of living()) kill(pid);
        return living().length === 0;
      });
      const sandbox = await startSandbox(engine, isolation);
      assert.equal((await sandbox.sh('echo alive')).stdout, 'alive\n');
      await sandbox.remove();
    });

    test('kill -9 of the engine leaves no orphan of the pool, and those taken stay', async () => {
      await untilFull(isolation);
      const taken = await startSandbox(engine, isolation);
      const orphans = await untilFull(isolation);
      await engine.restart();
      for (const handle of orphans) {
        assert.deepEqual(cgroups.processIds(handle), []);
        assert.ok(!cgroups.list().includes(handle));
        assert.ok(!readdirSync(join(engine.folder, 'sandboxes')).includes(handle));
      }
      const [only] = await engine.client.listSandboxes();
      assert.deepEqual([only?.id, only?.state], [taken.id, 'running']);
      assert.equal((await new TestSandbox(engine, taken.view).sh('echo stays')).stdout, 'stays\n');
      await taken.remove();
      assert.ok((await untilFull(isolation)).every((handle) => !orphans.includes(handle)));
    });
  });
}

test('an engine that stops takes the pool along', async () => {
  const handles = [...(await untilFull('container')), ...(await untilFull('gvisor'))];
  await engine.stop();
  assert.deepEqual(await engine.leftovers(), []);
  for (const handle of handles) assert.ok(!cgroups.list().includes(handle));
  await engine.launch();
});

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It went with another one.
  }
}
