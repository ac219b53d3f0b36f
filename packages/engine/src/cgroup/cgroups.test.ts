import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { CgroupLayout } from './cgroup-layout.ts';
import { CGROUP_PARENT } from './cgroup-layout.ts';
import { Cgroups } from './cgroups.ts';

/** As recorded on hosts of either kind, long files shortened. */
const RECORDED_V2 = {
  'cpu.stat': 'usage_usec 24512043\nuser_usec 18200120\nsystem_usec 6311923\nnr_periods 410\n',
  'memory.current': '104857600\n',
  'memory.max': '268435456\n',
  'memory.stat':
    'anon 61440000\nfile 40960000\nkernel 2048000\nactive_file 8192000\ninactive_file 32768000\n',
  'memory.events': 'low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n',
  'cgroup.procs': '101\n102\n1017\n',
};

const RECORDED_V1 = {
  'cpuacct/cpuacct.usage': '24512043999\n',
  'memory/memory.usage_in_bytes': '104857600\n',
  'memory/memory.limit_in_bytes': '9223372036854771712\n',
  'memory/memory.stat': 'cache 40960000\nrss 61440000\ninactive_file 100\ntotal_inactive_file 32768000\n',
  'memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
  'pids/cgroup.procs': '101\n102\n1017\n',
};

test('usage on a version 2 host', async (t) => {
  const folder = await recorded(t, RECORDED_V2, (name) => join(CGROUP_PARENT, 'one', name));
  const trees = [{ mountpoint: folder, version: 2, controllers: ['cpu', 'memory', 'pids'] }] as const;
  const cgroups = new Cgroups({ version: 2, trees });
  assert.deepEqual([cgroups.memoryLimitBytes('one'), cgroups.oomKills('one')], [268_435_456, 1]);
  assert.deepEqual(cgroups.usage('one'), {
    cpuMicroseconds: 24_512_043,
    memoryBytes: 104_857_600 - 32_768_000,
    processes: 3,
  });
});

test('usage on a version 1 host', async (t) => {
  const inTree = (name: string) => join(dirname(name), CGROUP_PARENT, 'one', name.slice(name.indexOf('/')));
  const folder = await recorded(t, RECORDED_V1, inTree);
  const trees = ['cpuacct', 'memory', 'pids'].map(
    (name) => ({ mountpoint: join(folder, name), version: 1, controllers: [name] }) as const,
  );
  const cgroups = new Cgroups({ version: 1, trees });
  assert.deepEqual([cgroups.memoryLimitBytes('one'), cgroups.oomKills('one')], [null, 2]);
  assert.deepEqual(cgroups.usage('one'), {
    cpuMicroseconds: 24_512_044,
    memoryBytes: 104_857_600 - 32_768_000,
    processes: 3,
  });
});

test('a cgroup that is not there has no usage, no processes and no kills', () => {
  const cgroups = new Cgroups();
  assert.equal(cgroups.usage('missing'), undefined);
  assert.equal(cgroups.oomKills('missing'), 0);
  assert.equal(cgroups.forkRefusals('missing'), 0);
  assert.deepEqual(cgroups.processIds('missing'), []);
});

test('a figure whose controller the host lacks is 0', async (t) => {
  const { 'cpu.stat': _, ...rest } = RECORDED_V2;
  const folder = await recorded(t, rest, (name) => join(CGROUP_PARENT, 'one', name));
  const trees = [{ mountpoint: folder, version: 2, controllers: ['memory', 'pids'] }] as const;
  assert.equal(new Cgroups({ version: 2, trees }).usage('one')?.cpuMicroseconds, 0);
});

test('kill ends every process of a cgroup and remove takes it away, both repeatable', async (t) => {
  const cgroups = new Cgroups();
  const handle = `cgtest-${randomBytes(4).toString('hex')}`;
  const folders = foldersOf(cgroups.layout, handle);
  const children = [1, 2, 3].map(() => spawn('sleep', ['60'], { stdio: 'ignore' }));
  const ended = children.map((child) => once(child, 'exit'));
  t.after(() => children.forEach((child) => child.kill('SIGKILL')));
  for (const folder of folders) await mkdir(join(folder, 'nested'), { recursive: true });
  await enableControllers(cgroups.layout);
  for (const folder of folders) {
    for (const child of children) await writeFile(join(folder, 'cgroup.procs'), String(child.pid));
  }

  assert.ok(cgroups.list().includes(handle));
  assert.deepEqual(new Set(cgroups.processIds(handle)), new Set(children.map((child) => child.pid)));
  assert.equal(cgroups.usage(handle)?.processes, 3);

  await cgroups.kill(handle);
  assert.deepEqual(cgroups.processIds(handle), []);
  for (const [, signal] of await Promise.all(ended)) assert.equal(signal, 'SIGKILL');
  await cgroups.kill(handle);

  await cgroups.remove(handle);
  assert.ok(folders.every((folder) => !existsSync(folder)));
  assert.ok(!cgroups.list().includes(handle));
  await cgroups.remove(handle);
});

/** In all trees but those that want more than a folder before they take a process. */
function foldersOf(layout: CgroupLayout, handle: string): string[] {
  return layout.trees
    .filter(({ version, controllers }) => version === 2 || !controllers.includes('cpuset'))
    .map(({ mountpoint }) => join(mountpoint, CGROUP_PARENT, handle));
}

/** On version 2 a cgroup has the files of those controllers that the ones above pass on; before the first sandbox they pass on none. */
async function enableControllers(layout: CgroupLayout): Promise<void> {
  if (layout.version === 1) return;
  for (const { mountpoint } of layout.trees)
    for (const folder of [mountpoint, join(mountpoint, CGROUP_PARENT)])
      await writeFile(join(folder, 'cgroup.subtree_control'), '+memory +pids');
}

async function recorded(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  place: (name: string) => string,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-cgroup-'));
  t.after(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, place(name))), { recursive: true });
    await writeFile(join(folder, place(name)), text);
  }
  return folder;
}
