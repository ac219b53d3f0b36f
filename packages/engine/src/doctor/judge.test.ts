import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCgroupLayout } from '../cgroup/cgroup-layout.ts';
import type { HostFacts, RuntimeFact } from './host-facts.ts';
import { judgeHost } from './judge.ts';
import { PROGRAMS } from './judge-programs.ts';

const NOW = new Date('2026-01-15T00:00:00Z');
const GIB = 1024 ** 3;

const RUNC: RuntimeFact = {
  name: 'runc',
  isolation: 'container',
  usable: true,
  reason: 'runc 1.3.6+ds1',
  version: '1.3.6+ds1',
  released: new Date('2025-09-01T00:00:00Z'),
};
const RUNSC: RuntimeFact = {
  name: 'runsc',
  isolation: 'gvisor',
  usable: true,
  reason: 'runsc 0.0~20240729.0',
  version: '0.0~20240729.0',
  released: new Date('2024-07-29T00:00:00Z'),
};

/** As recorded on Debian 12 with systemd.unified_cgroup_hierarchy=0, shortened. */
const HYBRID = [
  '34 33 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory',
  '35 33 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct',
  '36 33 0:31 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids',
  '37 33 0:32 / /sys/fs/cgroup/cpuset rw,nosuid - cgroup cgroup rw,cpuset',
  '38 33 0:33 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw',
].join('\n');
const UNIFIED = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw';

function facts(changes: Partial<HostFacts> = {}): HostFacts {
  const worked = { outcome: 'worked' } as const;
  return {
    isRoot: true,
    kernelRelease: '6.1.0-40-amd64',
    cgroups: parseCgroupLayout(HYBRID, () => 'hugetlb'),
    maxUserNamespaces: 96_360,
    seccompActions: 'kill_process kill_thread trap errno user_notif trace log allow',
    ipForward: true,
    attempts: { idmappedOverlay: worked, diskImage: worked, fuse: worked, nftables: worked, kvm: worked },
    runtimes: [RUNSC, RUNC],
    programs: Object.fromEntries(Object.keys(PROGRAMS).map((name) => [name, `/usr/bin/${name}`])),
    diskFault: null,
    freeDiskBytes: 80 * GIB,
    promisedDiskBytes: 8 * GIB,
    totalMemoryBytes: 16 * GIB,
    availableMemoryBytes: 12 * GIB,
    ...changes,
  };
}

function find(changes: Partial<HostFacts>, name: string) {
  const finding = judgeHost(facts(changes), NOW).findings.find((candidate) => candidate.name === name);
  assert.ok(finding, `no finding about ${name}`);
  return finding;
}

test('a host that has everything can run sandboxes of every class that works', () => {
  const report = judgeHost(facts(), NOW);
  assert.equal(report.canRunSandboxes, true);
  assert.deepEqual(report.classes, ['gvisor', 'container']);
  assert.deepEqual(
    report.findings.filter(({ status }) => status !== 'ok').map(({ name }) => name),
    [],
  );
});

test('a runtime older than a year without a known hole is no warning; its age is shown', () => {
  const { status, finding, remedy } = find({}, 'runsc (gvisor)');
  assert.match(finding, /built 2024-07-29, more than a year ago/);
  assert.deepEqual([status, remedy], ['ok', null]);
});

test('a runtime that lacks a fix is warned about by the name of the advisory, and still counts', () => {
  const finding = find({ runtimes: [{ ...RUNC, version: '1.1.5+ds1' }] }, 'runc (container)');
  assert.equal(finding.status, 'warn');
  assert.match(finding.finding, /CVE-2025-31133.*which svc holds off itself: .*no mount lands on/);
  assert.match(finding.remedy ?? '', /SVC_RUNC/);
});

test('a host with one isolation class is fit, a host without any is not', () => {
  const broken = { ...RUNC, usable: false, reason: 'start_failed: no cgroup' };
  assert.equal(judgeHost(facts({ runtimes: [RUNSC, broken] }), NOW).canRunSandboxes, true);
  const report = judgeHost(facts({ runtimes: [broken] }), NOW);
  assert.equal(report.canRunSandboxes, false);
  assert.deepEqual(report.classes, []);
  assert.equal(report.findings[0]?.finding, 'start_failed: no cgroup');
});

test('a runtime that is not installed comes with the command that installs it, unless it is optional', () => {
  const gone = { usable: false, version: null, released: null, reason: 'cannot be executed' };
  assert.equal(find({ runtimes: [{ ...RUNC, ...gone }] }, 'runc (container)').remedy, 'apt-get install runc');
  assert.equal(find({ runtimes: [{ ...RUNSC, ...gone }] }, 'runsc (gvisor)').remedy, 'make runsc');
  assert.equal(
    find({ runtimes: [RUNC, { ...RUNC, ...gone, name: 'crun' }] }, 'crun (container)').status,
    'absent',
  );
  const mute: RuntimeFact = { ...RUNC, name: 'crun', version: null, reason: 'crun' };
  assert.equal(
    find({ runtimes: [mute] }, 'crun (container)').status,
    'ok',
    'it works without a known version',
  );
});

test('cgroup versions are distinguished, and a missing controller names the limit that is not enforced', () => {
  assert.match(find({}, 'cgroups').finding, /hybrid/);
  const unified = (controllers: string) => ({ cgroups: parseCgroupLayout(UNIFIED, () => controllers) });
  assert.match(find(unified('cpuset cpu io memory pids'), 'cgroups').finding, /^v2, all/);
  const withoutPids = find(unified('cpuset cpu memory'), 'cgroups');
  assert.deepEqual(
    [withoutPids.status, withoutPids.finding],
    ['warn', 'v2, without pids: those limits do not hold'],
  );
  assert.equal(find(unified('cpuset cpu pids'), 'cgroups').status, 'missing');
});

test('a failed try shows its reason, and is an error when sandboxes need it', () => {
  const attempts = {
    ...facts().attempts,
    diskImage: { outcome: 'failed', reason: 'mountImage: ENXIO' } as const,
  };
  assert.equal(find({ attempts }, 'disk limits').finding, 'mountImage: ENXIO');
  assert.equal(judgeHost(facts({ attempts }), NOW).canRunSandboxes, false);
});

test('without FUSE sandboxes run, and the missing features are named', () => {
  const attempts = { ...facts().attempts, fuse: { outcome: 'failed', reason: 'ENOENT' } as const };
  const { status, remedy } = find({ attempts }, 'fuse');
  assert.equal(status, 'warn');
  assert.match(remedy ?? '', /bind mounts/);
  assert.equal(judgeHost(facts({ attempts }), NOW).canRunSandboxes, true);
});

test('KVM that does not work is no obstacle', () => {
  const attempts = { ...facts().attempts, kvm: { outcome: 'failed', reason: 'no answer' } as const };
  assert.equal(find({ attempts }, 'KVM').status, 'absent');
  assert.equal(judgeHost(facts({ attempts }), NOW).canRunSandboxes, true);
});

test('a missing program names what it is for and the command that installs it', () => {
  const programs = { ...facts().programs, 'svc-init': null, skopeo: null, conntrack: null };
  assert.deepEqual(
    [find({ programs }, 'svc-init').status, find({ programs }, 'svc-init').remedy],
    ['missing', 'make build'],
  );
  assert.equal(find({ programs }, 'svc-init').finding, 'not found; it is PID 1 of every sandbox');
  assert.equal(find({ programs }, 'skopeo').finding, 'not found; it pulls images');
  assert.equal(find({ programs }, 'skopeo').status, 'warn');
  const { status, remedy } = find({ programs }, 'conntrack');
  assert.deepEqual([status, remedy], ['warn', 'apt-get install conntrack']);
});

test('little space is a warning, none is an obstacle', () => {
  assert.equal(find({ freeDiskBytes: 3 * GIB }, 'disk').status, 'warn');
  const overcommitted = find({ promisedDiskBytes: 90 * GIB }, 'disk');
  assert.equal(overcommitted.status, 'warn');
  assert.match(overcommitted.finding, /may grow by 90\.0 GiB/);
  assert.equal(find({ freeDiskBytes: GIB / 10 }, 'disk').status, 'missing');
  assert.equal(find({ availableMemoryBytes: GIB / 2 }, 'memory').status, 'warn');
});

test('without root, without namespaces or without seccomp no sandbox can run', () => {
  for (const change of [
    { isRoot: false },
    { maxUserNamespaces: 0 },
    { maxUserNamespaces: null },
    { seccompActions: null },
  ])
    assert.equal(judgeHost(facts(change), NOW).canRunSandboxes, false, JSON.stringify(change));
});

test('a disk that takes no writes is missing, however much of it is free, and has a remedy', () => {
  const disk = find({ diskFault: 'EROFS: read-only file system' }, 'disk');
  assert.equal(disk.status, 'missing');
  assert.match(disk.finding, /takes no writes: EROFS/);
  assert.match(disk.remedy ?? '', /dmesg.*fsck/);
});
