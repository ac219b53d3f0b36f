import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import type { SandboxSpec } from '@svc/contract';
import { RUNTIMES, type RuntimeName } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from '../engine/each-runtime.ts';
import { importChanged } from '../engine/image-fixture.ts';
import type { TestSandbox } from '../engine/sandbox-fixture.ts';

/**
 * Images and volumes in which the folders of the kernel are links, or lie behind one: with them a runtime masks files with a "null device"
 * of the attacker's, or mounts and writes elsewhere than it thinks (the advisories of November 2025).
 */
let engines: EngineOfEachRuntime;
before(async () => {
  engines = await EngineOfEachRuntime.start();
});
after(() => engines[Symbol.asyncDispose]());

const MASKED = ['/proc/timer_list', '/proc/interrupts', '/proc/partitions', '/proc/zoneinfo'];
const SETTINGS = ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/panic'];

/** What an image changes, and the mounts that go with it; `/vol` is a volume that another sandbox has prepared and holds. */
interface Attack {
  readonly links: Readonly<Record<string, string>>;
  readonly mounts: NonNullable<SandboxSpec['mounts']>;
}

const volumeAt = (guest: string): Attack['mounts'] => [{ type: 'named', name: 'planted', guest }];

const ATTACKS: Readonly<Record<string, Attack>> = {
  'a volume over the devices': { links: { data: '/dev' }, mounts: volumeAt('/data') },
  'a volume over the devices, by a long way': {
    links: { data: 'a/b', a: '/', b: 'dev' },
    mounts: volumeAt('/data'),
  },
  'a volume below the devices': { links: { data: '/dev/shm' }, mounts: volumeAt('/data/x') },
  'a volume over /proc': { links: { data: '/proc' }, mounts: volumeAt('/data') },
  'a volume over settings': { links: { data: '/proc/self' }, mounts: volumeAt('/data/attr') },
  'a volume over /sys': { links: { data: 'sys' }, mounts: volumeAt('/data') },
  'a volume over our own folder': { links: { data: '.svc' }, mounts: volumeAt('/data') },
  'a volume over the root': { links: { data: '.' }, mounts: volumeAt('/data') },
  'a volume over the devices, by a link in a volume': {
    links: {},
    mounts: [...volumeAt('/vol'), { type: 'named', name: 'second', guest: '/vol/devices' }],
  },
};

/** Every disk begins with real folders in these places, so what the image has there is out of sight. */
const COVERED: Readonly<Record<string, Attack>> = {
  'devices in a volume': { links: { dev: '/vol' }, mounts: volumeAt('/vol') },
  'proc in a volume': { links: { proc: 'vol' }, mounts: volumeAt('/vol') },
  'sys in proc': { links: { sys: '/proc' }, mounts: [] },
  'devices in proc': { links: { dev: '/proc/self' }, mounts: [] },
  'proc in devices': { links: { proc: 'dev' }, mounts: [] },
};

for (const { name: runtime } of RUNTIMES) {
  suite(`on ${runtime}`, { concurrency: false }, () => {
    let holder: TestSandbox;
    const volumes = { planted: `planted-${runtime}`, second: `second-${runtime}` };
    before(async () => {
      const { client } = engines.engineOf(runtime);
      for (const id of Object.values(volumes)) await client.volumes.createVolume(id, 16);
      holder = await engines.start(runtime, { mounts: volumeAt('/vol') }, { volumes });
      await holder.sh('ln -s /proc/sys/kernel/core_pattern /vol/null; ln -s /dev /vol/devices');
      await holder.sh('for name in zero full tty random urandom; do ln -s /proc/kcore /vol/$name; done');
    });
    after(() => holder.remove());

    for (const [title, attack] of Object.entries(ATTACKS)) {
      test(`${title}: the start is refused`, async () => {
        const before = SETTINGS.map((path) => readFileSync(path, 'utf8'));
        const reference = `svc/links-${runtime}`;
        await importLinked(runtime, reference, attack.links);
        const image = { type: 'oci', reference } as const;
        const attempt = engines.start(runtime, { image, mounts: attack.mounts }, { volumes });
        const outcome = await attempt.catch((error: unknown) => new Error('refused', { cause: error }));
        if (!(outcome instanceof Error)) {
          const { stdout } = await outcome.sh(
            `head -c 20 ${MASKED.join(' ')}; ls -la /dev /vol; cat /proc/mounts`,
          );
          await outcome.remove();
          assert.fail(`it was started: ${stdout}`);
        }
        const { cause } = outcome;
        assert.ok(PlatformError.is(cause, 'start_failed'), String(cause));
        assert.match(cause.message, /link/);
        assert.deepEqual(
          SETTINGS.map((path) => readFileSync(path, 'utf8')),
          before,
        );
      });
    }

    for (const [title, attack] of Object.entries(COVERED)) {
      test(`${title}: the folders are the kernel's own all the same`, async () => {
        const reference = `svc/links-${runtime}`;
        await importLinked(runtime, reference, attack.links);
        const image = { type: 'oci', reference } as const;
        const sandbox = await engines.start(runtime, { image, mounts: attack.mounts }, { volumes });
        for (const path of MASKED) assert.equal((await sandbox.sh(`cat ${path} 2>/dev/null`)).stdout, '');
        const { stdout } = await sandbox.sh('stat -c %F /dev/null /dev /proc /sys; ls /proc/1/status');
        const folders = 'directory\ndirectory\ndirectory';
        assert.equal(stdout, `character special file\n${folders}\n/proc/1/status\n`);
        await sandbox.remove();
      });
    }

    test('links to other places stay unchanged', async () => {
      const reference = `svc/links-${runtime}`;
      await importLinked(runtime, reference, { data: '/srv', home: 'root' });
      const image = { type: 'oci', reference } as const;
      const sandbox = await engines.start(runtime, { image, mounts: volumeAt('/data/vol') }, { volumes });
      assert.match((await sandbox.sh('ls /data/vol /srv/vol')).stdout, /null/);
      for (const path of MASKED) assert.equal((await sandbox.sh(`cat ${path} 2>/dev/null`)).stdout, '');
      assert.equal((await sandbox.sh('stat -c %F /dev/null')).stdout, 'character special file\n');
      await sandbox.remove();
    });
  });
}

async function importLinked(runtime: RuntimeName, reference: string, links: Attack['links']): Promise<void> {
  await importChanged(engines.engineOf(runtime), reference, async (folder) => {
    for (const name of ['vol', 'srv']) await mkdir(join(folder, name));
    for (const [name, target] of Object.entries(links)) {
      await rm(join(folder, name), { recursive: true, force: true });
      await symlink(target, join(folder, name));
    }
  });
}
