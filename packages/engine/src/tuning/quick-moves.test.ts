import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { readCgroupLayout } from '../cgroup/cgroup-layout.ts';
import { ownProcesses, QuickMoves } from './quick-moves.ts';

const HYBRID = {
  version: 1,
  trees: [
    { mountpoint: '/sys/fs/cgroup/unified', version: 2, controllers: ['hugetlb'] },
    { mountpoint: '/sys/fs/cgroup/cpu,cpuacct', version: 1, controllers: ['cpu', 'cpuacct'] },
    { mountpoint: '/sys/fs/cgroup/pids', version: 1, controllers: ['pids'] },
  ],
} as const;
const UNIFIED = {
  version: 2,
  trees: [{ mountpoint: '/sys/fs/cgroup', version: 2, controllers: ['cpu', 'memory', 'pids'] }],
} as const;

test('the cgroup of this process is found on hosts of every kind', () => {
  const hybrid = '12:cpu,cpuacct:/\n9:pids:/system.slice/a:b.service\n0::/elsewhere\n';
  assert.equal(ownProcesses(HYBRID, hybrid), '/sys/fs/cgroup/pids/system.slice/a:b.service/cgroup.procs');
  assert.equal(ownProcesses(HYBRID, '9:pids:/\n'), '/sys/fs/cgroup/pids/cgroup.procs');
  assert.equal(ownProcesses(UNIFIED, '0::/user.slice\n'), '/sys/fs/cgroup/user.slice/cgroup.procs');
  assert.equal(ownProcesses(UNIFIED, ''), undefined);
  assert.equal(ownProcesses({ version: 2, trees: [] }, '0::/\n'), undefined);
});

test('this process moves while one of the holders is left, and stays where it is', async () => {
  const place = readFileSync('/proc/self/cgroup', 'utf8');
  const moves = new QuickMoves(readCgroupLayout());
  const first = moves.hold();
  const second = moves.hold();
  assert.equal(openFiles().length, 1);
  first[Symbol.dispose]();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(openFiles().length, 1);
  second[Symbol.dispose]();
  await waitUntil(() => openFiles().length === 0, 'it moves no more');
  assert.equal(readFileSync('/proc/self/cgroup', 'utf8'), place);
  const again = moves.hold();
  assert.equal(openFiles().length, 1, 'it can begin again');
  again[Symbol.dispose]();
  await waitUntil(() => openFiles().length === 0, 'it moves no more');
});

test('on a host without cgroups nothing happens', () => {
  using _ = new QuickMoves({ version: 2, trees: [] }).hold();
  assert.deepEqual(openFiles(), []);
});

function openFiles(): string[] {
  return readdirSync('/proc/self/fd')
    .map((descriptor) => {
      try {
        return readlinkSync(`/proc/self/fd/${descriptor}`);
      } catch {
        // The one that listed the folder.
        return '';
      }
    })
    .filter((path) => path.endsWith('/cgroup.procs'));
}
