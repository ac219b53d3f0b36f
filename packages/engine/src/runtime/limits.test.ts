import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { allowedCpus } from './cpu-set.ts';
import { readRlimitCeilings } from './rlimits.ts';
import { RUNTIMES } from './runtimes.ts';
import { startedGuest } from '../testing/started-guest.ts';
import type { StartedGuest } from '../testing/started-guest.ts';

const TMPFS = { source: null, owner: null, readonly: false, noexec: true, nosuid: true, nodev: true };

for (const { name, isolation, create } of RUNTIMES) {
  const sharesHostKernel = isolation === 'container';

  suite(`limits by ${name}`, { timeout: 240_000 }, () => {
    let guest: StartedGuest;
    let data: string;
    before(async () => {
      data = await mkdtemp(join(tmpdir(), 'svc-runtime-data-'));
      await chmod(data, 0o777);
      guest = await startedGuest(create, {
        vcpus: 1,
        memoryMib: 96,
        maxProcesses: 40,
        rlimits: [
          { resource: 'nofile', soft: 100, hard: 200 },
          { resource: 'core', soft: 0, hard: 0 },
          { resource: 'memlock', soft: 2 ** 40, hard: 2 ** 40 },
        ],
        mounts: [
          { ...TMPFS, destination: '/scratch', sizeMib: 2 },
          { ...TMPFS, destination: '/data', source: data, sizeMib: null, readonly: true },
        ],
      });
    });
    after(async () => {
      await guest.close();
      await rm(data, { recursive: true });
    });
    const run = (script: string) => guest.control.run(script);

    test('nproc shows the vcpus, and the CPU quota is theirs', async () => {
      assert.ok(availableParallelism() > 1, 'this test needs a host with more CPUs than the sandbox');
      assert.equal((await run('nproc')).output, '1\n');
      const before = guest.cgroups.usage(guest.spec.handle)?.cpuMicroseconds ?? 0;
      const startedAt = performance.now();
      // For two seconds, and until each process has run, also on a slow machine.
      await run(
        `for i in 1 2 3; do
          (end=$(($(date +%s) + 2)); n=0; while [ $((n+=1)) -lt 200000 ]; do :; done
          while [ $(date +%s) -lt $end ]; do :; done) & done; wait`,
      );
      const used = (guest.cgroups.usage(guest.spec.handle)?.cpuMicroseconds ?? 0) - before;
      assert.ok(used / 1000 < (performance.now() - startedAt) * 1.2, `${used} µs`);
      assert.ok(used > 100_000, `${used} µs`);
    });

    const place = sharesHostKernel ? 'pinned to as many CPUs as it has' : 'free to run on any CPU';
    test(`everything of the sandbox is ${place}`, async () => {
      const pids = guest.cgroups.processIds(guest.spec.handle);
      const places = await Promise.all(
        pids.map((pid) => readFile(`/proc/${pid}/status`, 'latin1').catch(() => null)),
      );
      // Leaves out processes that have ended since they were listed.
      const living = places.filter((status) => status !== null);
      assert.ok(living.length > 0);
      const count = sharesHostKernel ? 1 : availableParallelism();
      for (const status of living) assert.equal(allowedCpus(status).length, count);
    });

    test('the memory shown is the memory granted', async () => {
      const { output } = await run('cat /proc/meminfo; cat /proc/cpuinfo');
      assert.match(output, sharesHostKernel ? /^shown\nshown\n$/ : /^MemTotal:\s+98304 kB\n[^]*\nshown\n$/);
      assert.equal(
        guest.cgroups.memoryLimitBytes(guest.spec.handle),
        (96 + (sharesHostKernel ? 0 : 64)) * 2 ** 20,
      );
    });

    test('no more processes run than were granted', async () => {
      const script =
        'mkfifo /tmp/gate; for i in $(seq 1 60); do (read x < /tmp/gate) & echo $i > /tmp/count; done';
      assert.match((await run(script)).output, /can't fork/);
      // Opened repeatedly, for processes that come to the gate late.
      const look = 'exec 3<> /tmp/gate; echo open >&3; ls | cat';
      await waitUntil(async () => {
        const ran = await run(look).catch(() => null);
        return ran?.code === 0;
      }, 'there is room for new processes');
      const count = Number((await run('cat /tmp/count')).output);
      assert.ok(count > 30 && count <= 40, String(count));
    });

    test('rlimits hold; what this engine may not grant is lowered and reported', async () => {
      await guest.control.limit(guest.started.rlimits);
      const { output } = await run('ulimit -n; ulimit -H -n');
      assert.equal(output, '100\n200\n');
      const granted = guest.started.rlimits.find(({ resource }) => resource === 'memlock');
      const ceiling = sharesHostKernel ? (readRlimitCeilings().get('memlock') ?? 2 ** 40) : 2 ** 40;
      assert.deepEqual(granted, { resource: 'memlock', soft: ceiling, hard: ceiling });
    });

    test('a tmpfs has the size asked for and runs no programs', async () => {
      const { output } = await run(
        'dd if=/dev/zero of=/scratch/fill bs=1M count=3; wc -c < /scratch/fill; rm /scratch/fill',
      );
      assert.match(output, /No space left/);
      assert.match(output, /^2097152$/m);
      assert.notEqual(
        (await run('cat /bin/busybox > /scratch/b; chmod 755 /scratch/b; /scratch/b true')).code,
        0,
      );
      await run('rm -f /scratch/b');
    });

    test('a read-only mount cannot be written', async () => {
      assert.match((await run('echo x > /data/file')).output, /Read-only/);
    });

    test('/dev/shm holds half of the memory', async () => {
      assert.match((await run('df -k /dev/shm')).output, /\s49152\s/);
    });

    test('/tmp is on the disk of the sandbox, not in its memory', async () => {
      const { output } = await run('stat -c %d / /tmp');
      const [root, tmp] = output.trim().split('\n');
      assert.equal(tmp, root);
    });

    // The last test, because on gVisor it ends the whole sandbox.
    test('a process beyond the memory limit is killed and counted as out of memory', async () => {
      const { handle } = guest.spec;
      assert.equal(guest.cgroups.oomKills(handle), 0);
      const bomb = run('dd if=/dev/zero of=/dev/null bs=400M count=1');
      if (sharesHostKernel) {
        assert.equal((await bomb).reason, 'oom');
        assert.equal(await guest.runtime.isAlive(handle), true);
      } else {
        bomb.catch(() => undefined);
        await waitUntil(async () => !(await guest.runtime.isAlive(handle)), 'the sandbox has died');
      }
      assert.ok(guest.cgroups.oomKills(handle) > 0);
    });
  });
}
