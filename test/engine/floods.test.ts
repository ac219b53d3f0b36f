import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Cgroups } from '../../packages/engine/src/cgroup/cgroups.ts';
import { GuestProbe } from './guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from './sandbox-fixture.ts';
import { TestEngine } from './start-engine.ts';

const MIB = 1024 * 1024;
const MAX_PROCESSES = 100;
const LOG_LIMIT_BYTES = 3 * 10 * MIB;

const cgroups = new Cgroups();
let engine: TestEngine;
let probe: GuestProbe;
before(async () => {
  const args = ['--max-processes', String(MAX_PROCESSES)];
  [engine, probe] = await Promise.all([TestEngine.start({ args }), GuestProbe.compile()]);
});
after(async () => {
  await engine.destroy();
});

for (const isolation of CLASSES) {
  const sharesHostKernel = isolation === 'container';

  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('a fork bomb stays inside: others run, and it can be stopped and removed', async () => {
      const sandbox = await startSandbox(engine, isolation);
      await probe.putInto(sandbox);
      const channel = await sandbox.connect();
      // One of a shell dies of itself when nothing can be forked.
      await channel.exec({ cmd: '/bin/probe', args: ['bomb'] });
      const { handle } = sandbox;
      await waitUntil(() => (cgroups.usage(handle)?.processes ?? 0) > MAX_PROCESSES / 2);
      const neighbour = await startSandbox(engine, 'container');
      assert.equal((await neighbour.sh('echo fine')).stdout, 'fine\n');
      await neighbour.remove();
      if (sharesHostKernel) assert.ok((cgroups.usage(handle)?.processes ?? 0) <= MAX_PROCESSES + 1);
      const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 300 });
      assert.equal(stopped.state, 'stopped');
      assert.deepEqual(cgroups.processIds(handle), []);
      channel.close();
      await sandbox.remove();
    });

    test('a client that stops reading stops the producer, and the engine does not buffer the output', async () => {
      const sandbox = await startSandbox(engine, isolation);
      await sandbox.sh('echo warm');
      const before = residentBytes(engine.pid);
      const channels = await Promise.all(Array.from({ length: 4 }, () => sandbox.connect()));
      const script = 'while :; do cat /bin/busybox; cat /bin/busybox >&2; done';
      for (const channel of channels) await channel.exec({ cmd: '/bin/sh', args: ['-c', script] });
      await waitUntil(async () => await isIdle(sandbox.handle), { what: 'the producers wait' });
      const grown = residentBytes(engine.pid) - before;
      assert.ok(grown < 64 * MIB, `the engine has grown by ${Math.round(grown / MIB)} MiB`);
      const used = cgroups.usage(sandbox.handle)?.memoryBytes ?? 0;
      assert.ok(used < (sharesHostKernel ? 64 : 160) * MIB, `the sandbox uses ${Math.round(used / MIB)} MiB`);
      assert.equal((await sandbox.sh('echo others run')).stdout, 'others run\n');
      for (const channel of channels) channel.close();
      await waitUntil(async () => (await processesIn(sandbox)) === 0, { what: 'what they started is gone' });
      await sandbox.remove();
    });

    test('the log of a main process that floods keeps its size, and the engine its memory', async () => {
      const line = 'x'.repeat(200);
      const before = residentBytes(engine.pid);
      const sandbox = await startSandbox(engine, isolation, { runtime: { cmd: ['/bin/yes', line] } });
      const folder = join(engine.folder, 'sandboxes', sandbox.handle, 'logs');
      const newest = () => Math.max(...readdirSync(folder).map((name) => Number(/\d+/.exec(name))));
      await waitUntil(() => newest() >= 5, { what: 'the log has been rotated' });
      assert.equal((await sandbox.sh('echo others run')).stdout, 'others run\n');
      await engine.client.stopSandbox(sandbox.id, { graceMs: 200 });
      const sizes = readdirSync(folder).map((name) => statSync(join(folder, name)).size);
      assert.equal(sizes.length, 3);
      assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= LOG_LIMIT_BYTES, sizes.join());
      const grown = residentBytes(engine.pid) - before;
      assert.ok(grown < 100 * MIB, `the engine has grown by ${Math.round(grown / MIB)} MiB`);
      const [last] = await Array.fromAsync(engine.client.logs(sandbox.id, { tail: 1 }));
      assert.ok(last?.text.includes('xxx'));
      await sandbox.remove();
    });

    test('orphans are reaped, however many', async () => {
      const sandbox = await startSandbox(engine, isolation);
      const { code } = await sandbox.sh('i=0; while [ $i -lt 60 ]; do (true & true &); i=$((i+1)); done');
      assert.equal(code, 0);
      await waitUntil(async () => (await sandbox.sh('ps -o stat | grep -c ^Z')).stdout === '0\n');
      await sandbox.remove();
    });

    test('zombies count as processes, and are removed with their parent', async () => {
      const sandbox = await startSandbox(engine, isolation);
      await probe.putInto(sandbox);
      const channel = await sandbox.connect();
      const parent = await channel.exec({ cmd: '/bin/probe', args: ['zombies', '60'] });
      for await (const chunk of parent.stdout) {
        assert.match(Buffer.from(chunk).toString(), /"zombies","result":"60"/);
        break;
      }
      // They have been made; that they have ended too takes a moment.
      await waitUntil(async () => (await sandbox.sh('ps -o stat | grep -c ^Z')).stdout === '60\n');
      channel.close();
      await waitUntil(async () => (await sandbox.sh('ps -o stat | grep -c ^Z')).stdout === '0\n');
      await sandbox.remove();
    });

    test('a sandbox in which everything is stopped by SIGSTOP can be used and stopped', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'sleep 1000 & sleep 1000 & wait'] },
      });
      const { handle } = sandbox;
      await sandbox.sh('kill -STOP -1');
      assert.equal((await sandbox.sh('echo still')).stdout, 'still\n');
      const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 500 });
      assert.equal(stopped.state, 'stopped');
      assert.deepEqual(cgroups.processIds(handle), []);
      await sandbox.remove();
    });

    test('a guest that stops or kills PID 1 harms itself at most, and can be stopped', async () => {
      for (const signal of ['STOP', 'KILL']) {
        const sandbox = await startSandbox(engine, isolation);
        const { handle } = sandbox;
        const ran = await sandbox
          .sh(`kill -${signal} 1; echo alive`, { timeoutMs: sharesHostKernel ? 60_000 : 2000 })
          .catch(() => undefined);
        // The host's kernel keeps these signals from PID 1; gVisor's does not.
        if (sharesHostKernel) assert.equal(ran?.stdout, 'alive\n');
        const stopped = await engine.client.stopSandbox(sandbox.id, { graceMs: 300 });
        assert.ok(
          stopped.state === 'stopped' || stopped.end?.reason === 'crashed',
          JSON.stringify(stopped.end),
        );
        assert.deepEqual(cgroups.processIds(handle), []);
        await sandbox.remove();
      }
    });

    test('the end of a process ends its children', async () => {
      const sandbox = await startSandbox(engine, isolation);
      const ran = await sandbox.sh('(sleep 1234 & sleep 1235) & sleep 1236', { timeoutMs: 500 });
      assert.equal(ran.reason, 'timeout');
      await waitUntil(async () => (await sandbox.sh('ps -o args | grep -c "^sleep"')).stdout === '0\n');
      await sandbox.remove();
    });

    test('remove ends every process, daemons included, and leaves no trace', async () => {
      const sandbox = await startSandbox(engine, isolation, {
        runtime: { cmd: ['/bin/sh', '-c', 'trap "" TERM HUP; while :; do sleep 1; done'] },
      });
      await sandbox.sh(
        'setsid sh -c "trap : TERM; (setsid sleep 2000 &) ; sleep 2001 & wait" > /dev/null 2>&1 &',
      );
      await waitUntil(async () => (await sandbox.sh('ps -o args | grep -c "^sleep 200"')).stdout === '2\n');
      const { handle } = sandbox;
      const pids = sandbox.hostPids();
      assert.ok(pids.length > 0);
      await sandbox.remove();
      assert.deepEqual(cgroups.processIds(handle), []);
      assert.ok(!cgroups.list().includes(handle));
      // An id may be in use again, for something else.
      for (const pid of pids) assert.ok(!isInCgroup(pid, handle), String(pid));
      for (const path of [`sandboxes/${handle}`, `rootfs/${handle}`]) {
        assert.ok(!existsSync(join(engine.folder, path)), path);
      }
      for (const path of [`guests/${handle}`, `rootfs/${handle}`, `staging/${handle}`])
        assert.ok(!existsSync(join(engine.runFolder, path)), path);
      assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(handle));
    });
  });
}

function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return Number(kib) * 1024;
}

/** Whether it hardly computes any more. */
async function isIdle(handle: string): Promise<boolean> {
  const before = cgroups.usage(handle)?.cpuMicroseconds ?? 0;
  await delay(300);
  return (cgroups.usage(handle)?.cpuMicroseconds ?? 0) - before < 30_000;
}

/** Without PID 1 and those that count. */
async function processesIn(sandbox: TestSandbox): Promise<number> {
  return Number((await sandbox.sh('ps -o args | grep -c "^cat\\|while"')).stdout) - 2;
}

function isInCgroup(pid: number, handle: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'latin1').includes(handle);
  } catch {
    // It is gone.
    return false;
  }
}
