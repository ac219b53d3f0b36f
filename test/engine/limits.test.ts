import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { EngineEvent } from '@svc/engine/client';
import { readCgroupLayout, treeOf } from '../../packages/engine/src/cgroup/cgroup-layout.ts';
import { readRlimitCeilings } from '../../packages/engine/src/runtime/rlimits.ts';
import { GuestProbe } from './guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const MIB = 1024 * 1024;

let engine: TestEngine;
let probe: GuestProbe;
before(async () => {
  [engine, probe] = await Promise.all([TestEngine.start(), GuestProbe.compile()]);
});
after(async () => {
  await engine.destroy();
});

for (const isolation of CLASSES) {
  const sharesHostKernel = isolation === 'container';

  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a process that needs more memory than there is ends, and the reason is oom', async () => {
      const sandbox = await startSandbox(engine, isolation, { resources: { memory_mib: 64 } });
      const bomb = sandbox.sh('dd if=/dev/zero of=/dev/null bs=300M count=1');
      if (sharesHostKernel) {
        const ran = await bomb;
        assert.deepEqual([ran.code, ran.reason], [-1, 'oom']);
        assert.equal((await sandbox.sh('echo alive')).stdout, 'alive\n');
        assert.equal((await engine.client.getSandbox(sandbox.id)).state, 'running');
      } else {
        // gVisor's kernel holds the memory of all its processes; it ends as a whole.
        await assert.rejects(bomb);
        await assertEndedByOom(sandbox);
      }
      const entries = await Array.fromAsync(engine.client.logs(sandbox.id, { sources: ['system'] }));
      assert.ok(
        entries.some(({ text }) => /out of memory/.test(text)),
        JSON.stringify(entries),
      );
      assert.ok((await eventsOf(sandbox)).includes('oom'));
      await sandbox.remove();
    });

    test('a main process that needs too much memory ends the run, and the reason is oom', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        resources: { memory_mib: 64 },
        runtime: { cmd: ['/bin/sh', '-c', 'sleep 1; exec dd if=/dev/zero of=/dev/null bs=300M count=1'] },
      });
      await assertEndedByOom(sandbox);
      await sandbox.remove();
    });

    test('files in memory count as memory and have a size', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        resources: { memory_mib: 64 },
        mounts: [{ type: 'tmpfs', guest: '/scratch', size_mib: 16 }],
      });
      const shm = await sandbox.sh('dd if=/dev/zero of=/dev/shm/fill bs=1M count=100; wc -c < /dev/shm/fill');
      assert.match(shm.stderr, /No space left/);
      assert.equal(shm.stdout.trim(), String(32 * MIB), 'half of the memory');
      await waitUntil(async () => ((await metricsOf(sandbox))?.memoryBytes ?? 0) > 32 * MIB);
      await sandbox.sh('rm /dev/shm/fill');
      const { stderr } = await sandbox.sh('dd if=/dev/zero of=/scratch/fill bs=1M count=100');
      assert.match(stderr, /No space left/);
      assert.equal((await sandbox.sh('wc -c < /scratch/fill')).stdout.trim(), String(16 * MIB));
      await sandbox.remove();
    });

    test('a tmpfs that is larger than the memory does not give more of it', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        resources: { memory_mib: 64 },
        mounts: [{ type: 'tmpfs', guest: '/scratch', size_mib: 1024 }],
      });
      const ran = await sandbox.sh('dd if=/dev/zero of=/scratch/fill bs=1M count=300').catch(() => undefined);
      assert.notEqual(ran?.code, 0);
      if (ran !== undefined) assert.equal(ran.reason, 'oom');
      else await assertEndedByOom(sandbox);
      await sandbox.remove();
    });

    test('nproc, meminfo and df show the limits, and the CPU quota is that of the vcpus', async () => {
      assert.ok(availableParallelism() > 1, 'needs a host with more CPUs than the sandbox');
      const resources = { vcpus: 1, memory_mib: 96, disk_size_mib: 128 };
      const sandbox = await startSandbox(engine, isolation, { resources });
      const { stdout } = await sandbox.sh(
        'nproc; grep -c ^processor /proc/cpuinfo; grep MemTotal /proc/meminfo; df -k / | tail -n 1',
      );
      const [nproc, processors, memory, disk] = stdout.split('\n');
      assert.deepEqual([nproc, processors], ['1', '1']);
      assert.match(memory ?? '', /^MemTotal:\s+98304 kB$/);
      const totalKib = Number(disk?.trim().split(/\s+/)[1]);
      assert.ok(totalKib > 110 * 1024 && totalKib <= 132 * 1024, disk);
      assert.equal(cpuQuota(sandbox.handle), 1);
      await sandbox.remove();
    });

    test('a full disk is ENOSPC inside and nothing to the host', async () => {
      const sandbox = await startSandbox(engine, isolation, { resources: { disk_size_mib: 64 } });
      const neighbour = await startSandbox(engine, 'container');
      const { stderr } = await sandbox.sh('dd if=/dev/zero of=/root/fill bs=1M count=300');
      assert.match(stderr, /No space left/);
      const written = Number((await sandbox.sh('sync -d /root/fill; wc -c < /root/fill')).stdout);
      assert.ok(written > 40 * MIB && written <= 64 * MIB, String(written));
      // Of the host's disk it takes its own size, and a little for its file system.
      const taken = statSync(join(engine.folder, 'rootfs/disks', `${sandbox.handle}.img`)).blocks * 512;
      assert.ok(taken > 40 * MIB && taken < 80 * MIB, String(taken));
      assert.equal((await neighbour.sh('echo fine > /root/x && cat /root/x')).stdout, 'fine\n');
      assert.equal((await sandbox.sh('rm /root/fill; echo room > /root/x && cat /root/x')).stdout, 'room\n');
      await neighbour.remove();
      await sandbox.remove();
    });

    test('a sandbox whose disk is full can be stopped, started and removed', async () => {
      const sandbox = await startSandbox(engine, isolation, { resources: { disk_size_mib: 64 } });
      await sandbox.sh('dd if=/dev/zero of=/root/fill bs=64k; dd if=/dev/zero of=/root/rest bs=1');
      await engine.client.stopSandbox(sandbox.id, { graceMs: 1000 });
      assert.equal((await engine.client.startSandbox(sandbox.id)).state, 'running');
      assert.equal((await sandbox.sh('echo runs')).stdout, 'runs\n');
      await sandbox.remove();
    });

    test('files run out before the host does', async () => {
      const sandbox = await startSandbox(engine, isolation, { resources: { disk_size_mib: 64 } });
      const { stderr } = await sandbox.sh('mkdir /root/many; cd /root/many; seq 1 60000 | xargs touch');
      assert.match(stderr, /No space left/);
      assert.equal((await sandbox.sh('rm -r /root/many; echo x > /root/x && echo room')).stdout, 'room\n');
      await sandbox.remove();
    });

    test('descriptors run out per process, and others still start', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        rlimits: [{ resource: 'nofile', soft: 500, hard: 500 }],
      });
      await probe.putInto(sandbox);
      const channel = await sandbox.connect();
      const greedy = await Promise.all(
        Array.from({ length: 4 }, () => channel.exec({ cmd: '/bin/probe', args: ['open-many'] })),
      );
      for (const { stdout } of greedy) {
        const line = await firstLine(stdout);
        assert.deepEqual(line, { name: 'EMFILE', result: '497' });
      }
      assert.equal((await sandbox.sh('echo another')).stdout, 'another\n');
      channel.close();
      await sandbox.remove();
    });

    test('rlimits hold for every process, an exec may lower them, and what cannot be granted is lowered', async () => {
      const huge = 2 ** 40;
      const sandbox = await startSandbox(engine, isolation, {
        rlimits: [
          { resource: 'nofile', soft: 100, hard: 200 },
          { resource: 'core', soft: 0, hard: 0 },
          { resource: 'fsize', soft: MIB, hard: MIB },
          { resource: 'memlock', soft: huge, hard: huge },
        ],
      });
      assert.equal((await sandbox.sh('ulimit -n; ulimit -Hn; ulimit -c')).stdout, '100\n200\n0\n');
      assert.notEqual((await sandbox.sh('ulimit -n 300')).code, 0, 'beyond the hard limit');
      assert.notEqual((await sandbox.sh('dd if=/dev/zero of=/root/big bs=2M count=1')).code, 0);
      assert.equal((await sandbox.sh('wc -c < /root/big')).stdout.trim(), String(MIB));
      const lowered = { cmd: '/bin/sh', args: ['-c', 'ulimit -n; ulimit -Hn'] };
      const rlimits = [{ resource: 'nofile', soft: 50, hard: 60 }];
      assert.equal((await sandbox.run({ ...lowered, rlimits })).stdout, '50\n60\n');
      const ceiling = readRlimitCeilings().get('memlock') ?? huge;
      assert.equal((await sandbox.sh('ulimit -l')).stdout.trim(), String(ceiling / 1024));
      await sandbox.remove();
    });
  });
}

async function assertEndedByOom(sandbox: TestSandbox): Promise<void> {
  await waitUntil(async () => (await engine.client.getSandbox(sandbox.id)).state === 'failed', {
    what: 'the sandbox has ended',
  });
  const { end } = await engine.client.getSandbox(sandbox.id);
  assert.equal(end?.reason, 'oom');
  assert.match(end?.message ?? '', /more than 64 MiB were needed; raise resources\.memory_mib/);
}

async function eventsOf(sandbox: TestSandbox): Promise<EngineEvent['type'][]> {
  const types: EngineEvent['type'][] = [];
  const stop = new AbortController();
  // A mark at the end of what has happened so far.
  const mark = await startSandbox(engine, 'container');
  for await (const event of engine.client.events({ after: 0 }, stop.signal)) {
    if (event.sandboxId === sandbox.id) types.push(event.type);
    if (event.sandboxId === mark.id) break;
  }
  stop.abort();
  await mark.remove();
  return types;
}

async function metricsOf(sandbox: TestSandbox) {
  return (await engine.client.metrics()).find(({ id }) => id === sandbox.id);
}

/** In CPUs. */
function cpuQuota(handle: string): number {
  const layout = readCgroupLayout();
  const folder = join(treeOf(layout, 'cpu')?.mountpoint ?? '', 'svc', handle);
  const read = (file: string) => readFileSync(join(folder, file), 'utf8').trim();
  const [quota, period] =
    layout.version === 1 ? [read('cpu.cfs_quota_us'), read('cpu.cfs_period_us')] : read('cpu.max').split(' ');
  return Number(quota) / Number(period);
}

async function firstLine(stream: AsyncIterable<Uint8Array>): Promise<unknown> {
  for await (const chunk of stream) return JSON.parse(Buffer.from(chunk).toString('utf8'));
  return undefined;
}
