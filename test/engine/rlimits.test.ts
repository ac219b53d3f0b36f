import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Rlimit } from '@svc/contract';
import { RLIMIT_RESOURCES } from '@svc/contract/spec';
import { readRlimitCeilings } from '../../packages/engine/src/runtime/rlimits.ts';
import { RUNTIMES } from '../../packages/engine/src/runtime/runtimes.ts';
import { EngineOfEachRuntime } from './each-runtime.ts';
import { GuestProbe } from './guest-probe.ts';

const MIB = 1024 * 1024;
const NO_LIMIT = '18446744073709551615';

let engines: EngineOfEachRuntime;
let probe: GuestProbe;
before(async () => {
  [engines, probe] = await Promise.all([EngineOfEachRuntime.start(), GuestProbe.compile('limits-probe.c')]);
});
after(async () => {
  await engines[Symbol.asyncDispose]();
});

/** Small enough for every host, large enough for the probe. */
const WANTED: Readonly<Record<Rlimit['resource'], readonly [soft: number, hard: number]>> = {
  cpu: [100, 200],
  fsize: [64 * MIB, 65 * MIB],
  data: [64 * MIB, 65 * MIB],
  stack: [4 * MIB, 5 * MIB],
  core: [0, 4096],
  rss: [64 * MIB, 65 * MIB],
  nproc: [50, 60],
  nofile: [100, 200],
  memlock: [4096, 8192],
  as: [128 * MIB, 129 * MIB],
  locks: [7, 8],
  sigpending: [7, 8],
  msgqueue: [4096, 8192],
  nice: [0, 0],
  rtprio: [0, 0],
  rttime: [5, 6],
};

/** The error of a program that asks for more than `WANTED`. */
const EXCEEDED = [
  { resource: 'data', errors: { data: 'ENOMEM', heap: 'ENOMEM' } },
  { resource: 'as', errors: { data: 'ENOMEM', heap: 'ENOMEM', as: 'ENOMEM' } },
  { resource: 'memlock', errors: { memlock: 'ENOMEM' } },
  { resource: 'fsize', errors: { fsize: 'EFBIG' } },
  { resource: 'nofile', errors: { nofile: 'EBADF' } },
  { resource: 'msgqueue', errors: { msgqueue: 'EMFILE' } },
] as const;

for (const { name: runtime } of RUNTIMES) {
  const notKept = runtime === 'runsc' ? ['cpu', 'data', 'msgqueue', 'sigpending'] : [];

  describe(`on ${runtime}`, { concurrency: false }, () => {
    test('every resource has the limit that was asked for, and what would not be kept is refused', async () => {
      const rlimits = RLIMIT_RESOURCES.map((resource) => {
        const [soft, hard] = WANTED[resource];
        return { resource, soft, hard };
      });
      const kept = rlimits.filter(({ resource }) => !notKept.includes(resource));
      const sandbox = await engines.start(runtime, { rlimits: kept });
      await probe.putInto(sandbox);
      const seen = await probe.run(sandbox, ['limits']);
      for (const { resource, soft, hard } of kept) assert.equal(seen[resource], `${soft} ${hard}`, resource);
      assert.equal((await sandbox.sh('echo still there')).stdout, 'still there\n');
      await sandbox.remove();
      for (const resource of notKept) {
        const refused = rlimits.filter((limit) => limit.resource === resource);
        await assert.rejects(engines.start(runtime, { rlimits: refused }), {
          code: 'invalid_sandbox_config',
          message: new RegExp(`^rlimits\\[0\\]\\.resource: ${resource} is not kept by isolation gvisor`),
        });
      }
    });

    test('a command gets the limits that it asks for, and one that would not be kept refuses it', async () => {
      const sandbox = await engines.start(runtime);
      for (const resource of ['cpu', 'data', 'msgqueue', 'sigpending', 'nofile'] as const) {
        const [soft, hard] = WANTED[resource];
        const ran = sandbox.run({ cmd: 'true', rlimits: [{ resource, soft, hard }] });
        if (!notKept.includes(resource)) assert.equal((await ran).code, 0, resource);
        else
          await assert.rejects(ran, {
            kind: 'resource_limit',
            message: new RegExp(`rlimits: ${resource} is not kept by the isolation of this sandbox`),
          });
      }
      await sandbox.remove();
    });

    test('a limit that is taken holds, for a sandbox and for a command', async () => {
      const unlimited = await engines.start(runtime);
      await probe.putInto(unlimited);
      for (const { resource, errors } of EXCEEDED) {
        if (notKept.includes(resource)) continue;
        const [soft, hard] = WANTED[resource];
        const rlimits = [{ resource, soft, hard }];
        const limited = await engines.start(runtime, { rlimits });
        await probe.putInto(limited);
        for (const seen of [
          await probe.run(limited, ['exceed']),
          await probe.run(unlimited, ['exceed'], rlimits),
        ])
          for (const [name, error] of Object.entries(errors)) assert.equal(seen[name], error, resource);
        await limited.remove();
      }
      await unlimited.remove();
    });

    test('the largest number means no limit, as far as this engine may grant it', async () => {
      const most = Number(NO_LIMIT);
      const resources = ['fsize', 'core', 'as', 'memlock', 'nofile'] as const;
      const rlimits = resources.map((resource) => ({ resource, soft: most, hard: most }));
      const sandbox = await engines.start(runtime, { rlimits });
      await probe.putInto(sandbox);
      const seen = await probe.run(sandbox, ['limits']);
      const ceilings = readRlimitCeilings();
      for (const resource of resources) {
        const most = String(ceilings.get(resource) ?? NO_LIMIT);
        assert.equal(seen[resource], `${most} ${most}`, resource);
      }
      await sandbox.remove();
    });

    test('no thread leaves the CPU quota by its scheduling class', async () => {
      const sandbox = await engines.start(runtime);
      await probe.putInto(sandbox);
      const { other, ...refused } = await probe.run(sandbox, ['schedulers']);
      assert.equal(other, 'ok');
      assert.deepEqual(new Set(Object.values(refused)), new Set(['EPERM']));
      for (const [resource, hard] of [
        ['rtprio', 1],
        ['nice', 1],
      ] as const) {
        await assert.rejects(engines.start(runtime, { rlimits: [{ resource, soft: 0, hard }] }), {
          code: 'invalid_sandbox_config',
          message: /^rlimits\[0\]\.hard/,
        });
      }
      await sandbox.remove();
    });

    if (runtime !== 'runsc') {
      test('CPU time ends a process and its children, with a warning, and never PID 1', async () => {
        const sandbox = await engines.start(runtime, { rlimits: [{ resource: 'cpu', soft: 1, hard: 2 }] });
        await probe.putInto(sandbox);
        assert.deepEqual(await probe.run(sandbox, ['cpu']), { warned: 'yes', 'ended-by': 'SIGKILL' });
        assert.match((await sandbox.sh('cat /proc/1/limits')).stdout, /Max cpu time +unlimited +unlimited/);
        await sandbox.remove();
      });
    }
  });
}
