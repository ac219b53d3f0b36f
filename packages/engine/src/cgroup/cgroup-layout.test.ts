import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingControllers, parseCgroupLayout, treeOf } from './cgroup-layout.ts';

const V2 = `29 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
95 24 0:26 /system.slice/a.service /run/part rw,relatime - cgroup2 cgroup2 rw
`;

const HYBRID = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`;

test('a host with one version 2 tree has its controllers there', () => {
  const layout = parseCgroupLayout(V2, () => 'cpuset cpu io memory hugetlb pids rdma misc\n');
  assert.equal(layout.version, 2);
  assert.deepEqual(
    layout.trees.map(({ mountpoint }) => mountpoint),
    ['/sys/fs/cgroup'],
  );
  assert.equal(treeOf(layout, 'pids')?.mountpoint, '/sys/fs/cgroup');
  assert.deepEqual(missingControllers(layout), []);
});

test('on a hybrid host controllers are found in their own trees', () => {
  const layout = parseCgroupLayout(HYBRID, () => 'hugetlb\n');
  assert.equal(layout.version, 1);
  assert.equal(layout.trees.length, 5);
  assert.equal(treeOf(layout, 'cpuacct')?.mountpoint, '/sys/fs/cgroup/cpu,cpuacct');
  assert.equal(treeOf(layout, 'cpuset')?.mountpoint, '/sys/fs/cgroup/cpuset');
  assert.equal(treeOf(layout, 'hugetlb')?.version, 2);
  assert.equal(treeOf(layout, 'xattr'), undefined);
});

test('controllers that this host lacks are named', () => {
  assert.deepEqual(missingControllers(parseCgroupLayout(HYBRID, () => '')), ['pids']);
  assert.deepEqual(missingControllers(parseCgroupLayout('', () => '')), ['cpu', 'cpuset', 'memory', 'pids']);
});
