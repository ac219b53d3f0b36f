import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readCgroupLayout, treeOf } from '../../packages/engine/src/cgroup/cgroup-layout.ts';
import { CPU_WEIGHT } from '../../packages/engine/src/cgroup/cpu-weight.ts';
import { ownPath } from '../../packages/engine/src/cgroup/own-path.ts';
import { allowedCpus } from '../../packages/engine/src/runtime/cpu-set.ts';
import { TestServer } from '../e2e/start-server.ts';
import { GuestProbe } from '../engine/guest-probe.ts';
import { CLASSES, startSandbox, type TestSandbox } from '../engine/sandbox-fixture.ts';

/** Sandboxes that compute all the time leave the processor to those who serve them, and to each other. */
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

/** Usually, and when it has had its part of a processor that others wait for. */
function weightsOf(vcpus: number): readonly [number, number] {
  if (tree.version === 1) return [vcpus * 4096, vcpus * 256];
  return [1 + Math.floor(((vcpus * 4096 - 2) * 9999) / 262142), vcpus * 10];
}

const WEIGHT = { 1: CPU_WEIGHT[1].file, 2: CPU_WEIGHT[2].file } as const;

test('engine, server and what they start weigh more than all sandboxes together', async () => {
  const { engine } = server;
  const { stdout } = await promisify(execFile)('pgrep', ['-P', String(engine.pid)]);
  const helpers = stdout.trim().split('\n').map(Number);
  assert.ok(helpers.length >= 2, 'svc-host and the resolver');
  const sandbox = await startSandbox(engine, 'container');
  const parent = (await cgroupOf(sandbox.hostPids()[0] ?? 0)).replace(/\/[^/]*$/, '');
  for (const pid of [engine.pid, server.pid, await server.webPid(), ...helpers]) {
    // Of the cgroup at the top of the tree: on a host with systemd ours lies in another.
    const [, top] = (await cgroupOf(pid)).split('/');
    const weight = await settingOf(`/${top}`, WEIGHT);
    assert.ok(weight >= 8 * (await settingOf(parent, WEIGHT)), `process ${pid} weighs ${weight}`);
  }
  await sandbox.remove();
});

test('nothing that works for a guest has that weight', async () => {
  const { engine } = server;
  const mounts = [{ type: 'bind' as const, host: bindRoot, guest: '/bound' }];
  const own = await cgroupOf(engine.pid);
  for (const isolation of CLASSES) {
    const sandbox = await startSandbox(engine, isolation, { mounts });
    assert.equal((await sandbox.sh('echo x > /bound/file && cat /bound/file')).stdout, 'x\n');
    for (const pid of sandbox.hostPids()) assert.ok((await cgroupOf(pid)).endsWith(`/${sandbox.handle}`));
    const { stdout } = await promisify(execFile)('pgrep', ['-f', '^svc-host --serve-folder']);
    for (const pid of stdout.trim().split('\n').map(Number)) {
      // Others serve folders on this host too, and come and go.
      const place = await cgroupOf(pid).catch(() => '/');
      assert.notEqual(place, own);
    }
    await sandbox.remove();
  }
});

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
      const weigh = async (one: typeof quiet) => settingOf(await cgroupOf(one.hostPids()[0] ?? 0), WEIGHT);
      const [usual, behind] = weightsOf(1);
      for (const sandbox of busy) while ((await weigh(sandbox)) !== behind) await delay(100);
      // Its start counted as computing for a moment.
      while ((await weigh(quiet)) !== usual) await delay(100);
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

    test('its weight is that of its vcpus, and nproc tells them', async () => {
      const { engine } = server;
      for (const vcpus of [1, 2]) {
        const sandbox = await startSandbox(engine, isolation, { resources: { vcpus } });
        const [pid = 0] = sandbox.hostPids();
        const weight = await settingOf(await cgroupOf(pid), WEIGHT);
        assert.ok(weightsOf(vcpus).includes(weight), `${weight}`);
        const count = 'nproc; grep -c ^processor /proc/cpuinfo; cat /sys/devices/system/cpu/online';
        const online = vcpus === 1 ? '0' : `0-${vcpus - 1}`;
        assert.equal((await sandbox.sh(count)).stdout, `${vcpus}\n${vcpus}\n${online}\n`);
        await sandbox.remove();
      }
    });
  });
}

test('a sandbox of gVisor runs on one CPU while it uses little, and on any while it computes', async () => {
  const sandbox = await startSandbox(server.engine, 'gvisor');
  const untilCpus = async (count: number) => {
    while ((await cpusOf(sandbox)).some((cpus) => cpus !== count)) await delay(100);
  };
  await untilCpus(1);
  await noise.putInto(sandbox);
  const channel = await sandbox.connect();
  await channel.exec({ cmd: '/bin/probe', args: ['spin', '5'] });
  await untilCpus(availableParallelism());
  channel.close();
  await untilCpus(1);
  await sandbox.remove();
});

/** How many CPUs each of its processes may use. */
async function cpusOf(sandbox: TestSandbox): Promise<readonly number[]> {
  const read = (pid: number) => readFile(`/proc/${pid}/status`, 'latin1').catch(() => undefined);
  const statuses = await Promise.all(sandbox.hostPids().map(read));
  return statuses.flatMap((status) => (status === undefined ? [] : [allowedCpus(status).length]));
}

test('the quota of a sandbox of gVisor is that of its vCPUs, of which it may use at once what it saved', async () => {
  const sandbox = await startSandbox(server.engine, 'gvisor');
  // Its kernel has two CPUs all the same: with one, whatever of it waits for the host holds up the rest.
  assert.equal((await sandbox.sh('ls -d /sys/devices/system/cpu/cpu[0-9] | wc -l')).stdout.trim(), '2');
  const place = await cgroupOf(sandbox.hostPids()[0] ?? 0);
  assert.equal(await settingOf(place, { 1: 'cpu.cfs_quota_us', 2: 'cpu.max' }), 100_000);
  assert.equal(await settingOf(place, { 1: 'cpu.cfs_burst_us', 2: 'cpu.max.burst' }), 100_000);
  await sandbox.remove();
});
