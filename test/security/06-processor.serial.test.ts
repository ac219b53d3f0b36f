import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, getPriority, tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { readCgroupLayout, treeOf } from '../../packages/engine/src/cgroup/cgroup-layout.ts';
import { CPU_WEIGHT } from '../../packages/engine/src/cgroup/cpu-weight.ts';
import { ownPath } from '../../packages/engine/src/cgroup/own-path.ts';
import { TestServer } from '../e2e/start-server.ts';
import { GuestProbe } from '../engine/guest-probe.ts';
import { CLASSES, startSandbox } from '../engine/sandbox-fixture.ts';

/** Sandboxes that compute all the time leave enough of the processor to the engine, the server and each other. */
const tree = treeOf(readCgroupLayout(), 'cpu') ?? assert.fail('this test needs the controller cpu');
let server: TestServer;
let noise: GuestProbe;
let bindRoot: string;
before(async () => {
  bindRoot = await mkdtemp(`${tmpdir()}/svc-processor-`);
  [server, noise] = await Promise.all([
    TestServer.start({ engineArgs: ['--bind-root', bindRoot] }),
    GuestProbe.compile('../security/noise.c'),
  ]);
});
after(async () => {
  await server.destroy();
  await rm(bindRoot, { recursive: true });
});

async function cgroupOf(pid: number): Promise<string> {
  return ownPath(tree, 'cpu', await readFile(`/proc/${pid}/cgroup`, 'latin1')) ?? '';
}

async function settingOf(path: string, file: { readonly 1: string; readonly 2: string }): Promise<number> {
  return Number((await readFile(`${tree.mountpoint}${path}/${file[tree.version]}`, 'latin1')).split(' ')[0]);
}

function weightOf(vcpus: number): number {
  if (tree.version === 1) return vcpus * 4096;
  return 1 + Math.floor(((vcpus * 4096 - 2) * 9999) / 262142);
}

const WEIGHT = { 1: CPU_WEIGHT[1].file, 2: CPU_WEIGHT[2].file } as const;

test('all sandboxes together weigh as much as one other group of the host', async () => {
  const sandbox = await startSandbox(server.engine, 'container');
  const parent = (await cgroupOf(sandbox.hostPids()[0] ?? 0)).replace(/\/[^/]*$/, '');
  assert.equal(parent.split('/').length, 2, parent);
  assert.equal(await settingOf(parent, WEIGHT), CPU_WEIGHT[tree.version].usual);
  await sandbox.remove();
});

test('a process that serves a folder to one sandbox has a lower priority than the engine', async () => {
  const { engine } = server;
  const mounts = [{ type: 'bind' as const, host: bindRoot, guest: '/bound' }];
  const sandbox = await startSandbox(engine, 'container', { mounts });
  assert.equal((await sandbox.sh('echo x > /bound/file && cat /bound/file')).stdout, 'x\n');
  const { stdout } = await promisify(execFile)('pgrep', ['-f', '^svc-host --serve-folder']);
  const servers = stdout.trim().split('\n').map(Number);
  assert.ok(servers.length >= 1);
  // Servers of other engines on this host come and go.
  const priorities = servers.flatMap((pid) => priorityOf(pid) ?? []);
  assert.deepEqual([...new Set(priorities)], [10]);
  assert.equal(priorityOf(engine.pid), 0);
  await sandbox.remove();
});

function priorityOf(pid: number): number | undefined {
  try {
    return getPriority(pid);
  } catch {
    return undefined;
  }
}

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    test('beside sandboxes that compute, as many as there are CPUs, everything is answered', async () => {
      const { engine } = server;
      const quiet = await startSandbox(engine, isolation);
      const channels = [];
      const busy = [];
      for (let count = 0; count < availableParallelism(); count++) {
        const sandbox = await startSandbox(engine, isolation);
        busy.push(sandbox);
        await noise.putInto(sandbox);
        const channel = await sandbox.connect();
        channels.push(channel);
        await channel.exec({ cmd: '/bin/probe', args: ['spin', '120'] });
      }
      for (let count = 0; count < 5; count++) {
        assert.equal((await quiet.sh('echo here')).stdout, 'here\n');
        const fresh = await startSandbox(engine, isolation);
        assert.equal((await fresh.sh('echo new')).stdout, 'new\n');
        await fresh.remove();
        assert.equal((await server.call('sandbox.metrics.get', {})).error, undefined);
      }
      for (const channel of channels) channel.close();
      for (const sandbox of [quiet, ...busy]) await sandbox.remove();
    });

    test('the CPU weight follows the vCPUs, and nproc prints their number', async () => {
      const { engine } = server;
      for (const vcpus of [1, 2]) {
        const sandbox = await startSandbox(engine, isolation, { resources: { vcpus } });
        const [pid = 0] = sandbox.hostPids();
        assert.equal(await settingOf(await cgroupOf(pid), WEIGHT), weightOf(vcpus));
        const count = 'nproc; grep -c ^processor /proc/cpuinfo; cat /sys/devices/system/cpu/online';
        const online = vcpus === 1 ? '0' : `0-${vcpus - 1}`;
        assert.equal((await sandbox.sh(count)).stdout, `${vcpus}\n${vcpus}\n${online}\n`);
        await sandbox.remove();
      }
    });
  });
}

test('the quota of a sandbox of gVisor is that of its vCPUs, of which it may use at once what it saved', async () => {
  const sandbox = await startSandbox(server.engine, 'gvisor');
  // Its kernel has two CPUs all the same: with one, a thread of it that waits for the host blocks the others.
  assert.equal((await sandbox.sh('ls -d /sys/devices/system/cpu/cpu[0-9] | wc -l')).stdout.trim(), '2');
  const place = await cgroupOf(sandbox.hostPids()[0] ?? 0);
  assert.equal(await settingOf(place, { 1: 'cpu.cfs_quota_us', 2: 'cpu.max' }), 100_000);
  assert.equal(await settingOf(place, { 1: 'cpu.cfs_burst_us', 2: 'cpu.max.burst' }), 100_000);
  await sandbox.remove();
});
