import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerConfig } from './container-config.ts';
import { gvisorConfig } from './gvisor-config.ts';
import type { HostAbilities } from './host-abilities.ts';
import type { GuestConfig } from './oci-config.ts';
import type { RuntimeSpec } from './runtime.ts';

const SPEC: RuntimeSpec = {
  handle: 'one',
  rootfs: '/run/rootfs',
  hostname: 'guest',
  guestFolder: '/run/guest',
  initToken: 'ab'.repeat(32),
  profile: 'restricted',
  slot: { key: 'k', userNamespace: '/run/user', networkNamespace: '/run/net', idBase: 1_000_000, link: null },
  vcpus: 2,
  memoryMib: 100,
  maxProcesses: 50,
  cgroupParent: null,
  rlimits: [{ resource: 'nofile', soft: 10, hard: 2000 }],
  mounts: [],
  procFiles: { meminfo: '/run/meminfo', cpuinfo: '/run/cpuinfo', cpuOnline: '/run/online' },
};

const HOST: HostAbilities = {
  cgroupVersion: 1,
  limitsCpu: true,
  limitsMemory: true,
  limitsSwap: true,
  limitsProcesses: true,
  cpus: [0, 1, 2, 3],
  rlimits: new Map([['nofile', 1000]]),
  raisesLimits: true,
};

const MIB = 1024 * 1024;

for (const [name, configure] of [
  ['container', containerConfig],
  ['gvisor', gvisorConfig],
] as const) {
  test(`a ${name} can gain no privileges and starts with no inheritable ones`, () => {
    const { process } = parsed(configure(SPEC, HOST, () => 0));
    assert.equal(process.noNewPrivileges, true);
    assert.deepEqual(Object.keys(process.capabilities).sort(), ['bounding', 'effective', 'permitted']);
    assert.deepEqual(process.args, ['/.svc/init']);
    assert.ok(process.env.includes('SVC_PROFILE=restricted'));
  });

  test(`a ${name} has every namespace and its own range of users`, () => {
    const { linux } = parsed(configure(SPEC, HOST, () => 0));
    const kinds = linux.namespaces.map(({ type }) => type).sort();
    assert.deepEqual(kinds, ['cgroup', 'ipc', 'mount', 'network', 'pid', 'user', 'uts']);
    const ids = [{ containerID: 0, hostID: 1_000_000, size: 65_536 }];
    assert.deepEqual([linux.uidMappings, linux.gidMappings], [ids, ids]);
    assert.equal(linux.cgroupsPath, '/svc/one');
  });

  const place = name === 'container' ? { cpus: '0,3' } : {};
  test(`the vcpus of a ${name} are a weight and a quota${'cpus' in place ? ', and a place' : ''}`, () => {
    const { cpu } = parsed(configure(SPEC, HOST, () => 3)).linux.resources;
    assert.deepEqual(cpu, { shares: 8192, quota: 200_000, period: 100_000, ...place });
  });

  test(`a ${name} on a host that cannot limit asks for no limit`, () => {
    const poor = {
      ...HOST,
      limitsCpu: false,
      limitsMemory: false,
      limitsSwap: false,
      limitsProcesses: false,
    };
    const { resources } = parsed(configure(SPEC, { ...poor, cpus: [] }, () => 0)).linux;
    assert.deepEqual([resources.cpu, resources.memory, resources.pids], [{}, {}, undefined]);
  });

  test(`our folder is the last mount of a ${name}, so that nothing covers it`, () => {
    const mounts = [{ ...PLAIN_TMPFS, destination: '/data', sizeMib: null }];
    const shown = parsed(configure({ ...SPEC, mounts }, HOST, () => 0)).mounts;
    assert.equal(shown.at(-1)?.destination, '/.svc');
    assert.ok(shown.at(-1)?.options.includes('ro'));
    // Without a size the kernel would allow half of the host's memory.
    assert.deepEqual(shown.at(-2)?.options, ['rw', 'nosuid', 'nodev', 'noexec', 'mode=1777', 'size=100m']);
  });
}

test('a container has no swap where swap is counted, and no swap limit where it is not', () => {
  const memory = (limitsSwap: boolean) =>
    parsed(containerConfig(SPEC, { ...HOST, limitsSwap }, () => 0)).linux.resources.memory;
  assert.deepEqual(memory(true), { limit: 100 * MIB, swap: 100 * MIB });
  assert.deepEqual(memory(false), { limit: 100 * MIB });
});

test('a container sees its own cgroup, read-only, where that is one mount', () => {
  const find = (cgroupVersion: 1 | 2) =>
    parsed(containerConfig(SPEC, { ...HOST, cgroupVersion }, () => 0)).mounts.find(
      ({ type }) => type === 'cgroup',
    );
  assert.equal(find(1), undefined);
  assert.equal(find(2)?.destination, '/sys/fs/cgroup');
  assert.ok(find(2)?.options.includes('ro'));
});

test('rlimits of a container are bounded by the host, those of gvisor by the processes granted', () => {
  const granted = [{ resource: 'nofile', soft: 10, hard: 1000 }];
  assert.deepEqual(containerConfig(SPEC, HOST, () => 0).rlimits, granted);
  const rlimits = [{ resource: 'nproc', soft: 20, hard: 4096 }] as const;
  assert.deepEqual(gvisorConfig({ ...SPEC, rlimits }, HOST).rlimits, [
    { resource: 'nproc', soft: 20, hard: 51 },
  ]);
});

test('the runtime of a container sets only what may have to be raised, where it can be; svc-init sets the rest', () => {
  const rlimits = [
    { resource: 'memlock', soft: 4096, hard: 4096 },
    { resource: 'nofile', soft: 2 ** 64, hard: 2 ** 64 },
  ] as const;
  const limitsOf = (raisesLimits: boolean) => {
    const host = { ...HOST, rlimits: new Map(), raisesLimits };
    return containerConfig({ ...SPEC, rlimits }, host, () => 0).json;
  };
  assert.match(
    limitsOf(true),
    /"rlimits":\[{"type":"RLIMIT_NOFILE","soft":18446744073709551615,"hard":18446744073709551615}\]/,
  );
  assert.match(limitsOf(false), /"rlimits":\[\]/);
});

test('a caller that mounts its own /tmp on gvisor gets just that', () => {
  const destinations = (destination: string) =>
    parsed(gvisorConfig({ ...SPEC, mounts: [{ ...PLAIN_TMPFS, destination, sizeMib: 8 }] }, HOST)).mounts.map(
      (mount) => mount.destination,
    );
  assert.ok(destinations('/data').includes('/tmp/.svc'));
  assert.ok(!destinations('/tmp').includes('/tmp/.svc'));
  assert.ok(!destinations('/tmp/').includes('/tmp/.svc'));
});

const PLAIN_TMPFS = { source: null, owner: null, readonly: false, noexec: true, nosuid: true, nodev: true };

interface Config {
  readonly process: {
    readonly noNewPrivileges: boolean;
    readonly capabilities: object;
    readonly args: readonly string[];
    readonly env: readonly string[];
  };
  readonly mounts: readonly {
    readonly destination: string;
    readonly type: string;
    readonly options: readonly string[];
  }[];
  readonly linux: {
    readonly cgroupsPath: string;
    readonly namespaces: readonly { readonly type: string }[];
    readonly uidMappings: unknown;
    readonly gidMappings: unknown;
    readonly resources: { readonly cpu: unknown; readonly memory: unknown; readonly pids?: unknown };
  };
}

function parsed(config: GuestConfig): Config {
  // SAFETY of the type: written by `ociConfig` a moment ago; a field that is missing fails the assertion on it.
  return JSON.parse(config.json) as Config;
}
