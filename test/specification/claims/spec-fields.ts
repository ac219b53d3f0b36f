import assert from 'node:assert/strict';
import { RLIMIT_RESOURCES } from '@svc/contract';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, provedBy, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { CONFIGURED } from '../images.ts';
import { FULL, fullBox, LABELS, VCPUS } from './full-box.ts';
import { plainBox } from './record.ts';

const KIB_PER_MIB = 1024;

/** Why the run of a sandbox ended, as the audit log has it. */
async function endOf(ground: Ground, id: string): Promise<string> {
  const { body } = await ground.rest('GET', '/events?event_type=sandbox_stopped&limit=100');
  return body.data.find(({ payload }: Json) => payload.sandbox_id === id)?.payload.reason;
}

export const resourceClaims: readonly Claim[] = [
  claimOnce(
    'spec.image',
    'The image that it was made from',
    'the reference of the create',
    async (ground) => {
      assert.equal((await plainBox(ground)).spec.image, BUSYBOX);
    },
  ),
  claim(
    'spec.resources.vcpus',
    'How many CPUs it may use',
    '`nproc` inside, with what was asked for and without',
    async (ground) => {
      const box = await fullBox(ground);
      assert.deepEqual([box.spec.resources.vcpus, await ground.seen(box, 'nproc')], [VCPUS, String(VCPUS)]);
      const plain = await plainBox(ground);
      assert.deepEqual([plain.spec.resources.vcpus, await ground.seen(plain, 'nproc')], [1, '1']);
    },
    { default: '1' },
  ),
  claim(
    'spec.resources.memory_mib',
    'How much memory it may use, in MiB',
    '`MemTotal` in `/proc/meminfo`, with what was asked for and without',
    async (ground) => {
      const total = async (box: Json) =>
        Number(/\d+/.exec(await ground.seen(box, 'grep MemTotal /proc/meminfo'))?.[0]);
      const [box, plain] = [await fullBox(ground), await plainBox(ground)];
      assert.deepEqual([box.spec.resources.memory_mib, await total(box)], [96, 96 * KIB_PER_MIB]);
      assert.deepEqual([plain.spec.resources.memory_mib, await total(plain)], [512, 512 * KIB_PER_MIB]);
    },
    { default: '512' },
  ),
  claim(
    'spec.resources.disk_size_mib',
    'The size of its disk in MiB',
    '`df` of the root inside, with what was asked for and without',
    async (ground) => {
      const size = async (box: Json) =>
        Number((await ground.seen(box, 'df -k / | tail -n 1')).trim().split(/\s+/)[1]);
      const [box, plain] = [await fullBox(ground), await plainBox(ground)];
      assert.equal(box.spec.resources.disk_size_mib, 128);
      const [asked, usual] = [await size(box), await size(plain)];
      assert.ok(asked > 110 * KIB_PER_MIB && asked <= 132 * KIB_PER_MIB, `${asked}`);
      assert.ok(usual > 3900 * KIB_PER_MIB && usual <= 4200 * KIB_PER_MIB, `${usual}`);
    },
    { default: '4096' },
  ),
];

export const environmentClaims: readonly Claim[] = [
  claim(
    'spec.env.key',
    'The name of a variable that every process of the sandbox has',
    'it is set inside; a name that is given twice is refused',
    async (ground) => {
      const box = await fullBox(ground);
      assert.match(await ground.seen(box, 'env'), /^GREETING=/m);
      const twice = [
        { key: 'A', value: '1' },
        { key: 'A', value: '2' },
      ];
      assert.equal((await ground.refusal({ env: twice })).details.field, 'env[1].key');
    },
  ),
  claim(
    'spec.env.value',
    'Its value, byte for byte',
    'a shell inside prints what the answer shows',
    async (ground) => {
      const box = await fullBox(ground);
      assert.deepEqual(
        box.spec.env.find(({ key }: Json) => key === 'GREETING'),
        FULL.env[0],
      );
      assert.equal(await ground.seen(box, 'echo "$GREETING"'), FULL.env[0]?.value);
    },
  ),
  claimOnce(
    'spec.labels',
    'Words to find it by',
    'the answer shows them, a list that asks for one of them has it, and reserved prefixes are refused',
    async (ground) => {
      const box = await fullBox(ground);
      assert.partialDeepStrictEqual(box.spec.labels, LABELS);
      const query = new URLSearchParams({ labels: JSON.stringify({ team: 'blue' }) });
      const { body } = await ground.rest('GET', `/sandboxes?${query.toString()}`);
      assert.deepEqual(
        body.data.map(({ id }: Json) => id),
        [box.id],
      );
      for (const prefix of ['sandbox.', 'microsandbox.', 'service.'])
        assert.equal(
          (await ground.refusal({ labels: { [`${prefix}x`]: '1' } })).details.field,
          `labels.${prefix}x`,
        );
    },
  ),
];

export const lifecycleClaims: readonly Claim[] = [
  claim(
    'spec.lifecycle.ephemeral',
    'It is removed by the server when its run ends',
    'the answer shows it, and after the main process has ended there is no such sandbox',
    async (ground) => {
      const runtime = { cmd: ['/bin/true'] };
      const { body } = await ground.create({ lifecycle: { ephemeral: true }, runtime }, '?start=true');
      assert.equal(body.ephemeral, true);
      await ground.wait(
        async () => (await ground.rest('GET', `/sandboxes/${body.id}`)).status === 404,
        'it is gone',
      );
      assert.equal((await plainBox(ground)).spec.lifecycle.ephemeral, false);
    },
    { default: '`false`' },
  ),
  claim(
    'spec.lifecycle.idle_timeout_secs',
    'It is stopped after this long without activity',
    'it stops, and the audit log gives `idle_timeout` as the reason',
    async (ground) => {
      const box = await ground.running({ lifecycle: { idle_timeout_secs: 1 } });
      assert.equal(box.spec.lifecycle.idle_timeout_secs, 1);
      await ground.until(box.id, 'stopped');
      assert.equal(await endOf(ground, box.id), 'idle_timeout');
      assert.equal((await plainBox(ground)).spec.lifecycle.idle_timeout_secs, null);
    },
    { default: 'never' },
  ),
  claim(
    'spec.lifecycle.max_duration_secs',
    'A run ends after this long, also while it works',
    'it stops while its main process is at work, and the reason is `max_duration`',
    async (ground) => {
      const runtime = { cmd: ['/bin/sh', '-c', 'while :; do sleep 0.1; done'] };
      const box = await ground.running({ lifecycle: { max_duration_secs: 2 }, runtime });
      assert.equal(box.spec.lifecycle.max_duration_secs, 2);
      await ground.until(box.id, 'stopped');
      assert.equal(await endOf(ground, box.id), 'max_duration');
      assert.equal((await plainBox(ground)).spec.lifecycle.max_duration_secs, null);
    },
    { default: 'no limit' },
  ),
  provedBy(
    'rule.idle-activity',
    'Use of the command channel keeps a sandbox from being idle',
    'test/e2e/channel.test.ts',
    'a sandbox is idle when its channel is unused, and not before',
  ),
  claim(
    'rule.create-boots-only',
    'Without a command of the caller nothing is run: neither the entrypoint nor the command of the image',
    'an image whose own command would end at once runs on, with an empty log',
    async (ground) => {
      const box = await ground.running({ image: { type: 'oci', reference: CONFIGURED } });
      const { body } = await ground.rest('GET', `/sandboxes/${box.id}/logs/entries`);
      assert.deepEqual(body.data, []);
      assert.equal((await ground.get(box.id)).status, 'running');
      await ground.remove(box.id);
    },
  ),
];

/** Numbers that any process may ask for, by the number that the kernel has for each resource. */
const LIMITS = {
  cpu: [0, 1234],
  fsize: [1, 123_456_512],
  data: [2, 1_234_567_168],
  stack: [3, 4_194_304],
  core: [4, 0],
  rss: [5, 123_456_512],
  nproc: [6, 321],
  nofile: [7, 321],
  memlock: [8, 32_768],
  as: [9, 12_345_671_680],
  locks: [10, 123],
  sigpending: [11, 123],
  msgqueue: [12, 4096],
  nice: [13, 0],
  rtprio: [14, 0],
  rttime: [15, 1_234_567],
} as const satisfies Record<(typeof RLIMIT_RESOURCES)[number], readonly [number, number]>;

/** gVisor's kernel does not keep these, so they are refused there. */
const NOT_IN_GVISOR: readonly string[] = ['cpu', 'data', 'msgqueue', 'sigpending'];

function keptBy({ isolation }: Ground): readonly (typeof RLIMIT_RESOURCES)[number][] {
  return RLIMIT_RESOURCES.filter((name) => isolation !== 'gvisor' || !NOT_IN_GVISOR.includes(name));
}

async function limitedBox(ground: Ground): Promise<Json> {
  const rlimits = keptBy(ground).map((resource) => ({
    resource,
    soft: LIMITS[resource][1],
    hard: LIMITS[resource][1],
  }));
  return await ground.shared('limited', () =>
    ground.running({ image: { type: 'oci', reference: 'python' }, rlimits, resources: { memory_mib: 128 } }),
  );
}

function capitalized(resource: string): string {
  return `${resource.slice(0, 1).toUpperCase()}${resource.slice(1)}`;
}

export const rlimitClaims: readonly Claim[] = [
  claim(
    'spec.rlimits.resource',
    'Which limit of the kernel it is; answers begin it with a capital',
    '`getrlimit` of each of the sixteen in a process inside; in class gvisor that four are refused',
    async (ground) => {
      const box = await limitedBox(ground);
      const script = `python3 -c 'import json, resource; print(json.dumps([resource.getrlimit(n) for n in range(16)]))'`;
      const seen = JSON.parse(await ground.seen(box, script)) as readonly (readonly number[])[];
      for (const resource of keptBy(ground)) {
        const [number, value] = LIMITS[resource];
        assert.deepEqual(seen[number], [value, value], resource);
      }
      assert.deepEqual(
        box.spec.rlimits.map(({ resource }: Json) => resource),
        keptBy(ground).map(capitalized),
      );
      if (ground.isolation !== 'gvisor') return;
      for (const resource of NOT_IN_GVISOR) {
        const { details } = await ground.refusal({ rlimits: [{ resource, soft: 9, hard: 9 }] });
        assert.equal(details.field, 'rlimits[0].resource');
      }
    },
    {
      covers: RLIMIT_RESOURCES.flatMap((name) => [
        `spec.rlimits.resource=${name}`,
        `spec.rlimits.resource=${capitalized(name)}`,
      ]),
    },
  ),
  claim(
    'spec.rlimits.soft',
    'The limit in force; it must not be above `hard`',
    '`ulimit` inside, a file that ends at the limit of `fsize`, and a refusal',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.rlimits[0].soft, 100);
      assert.equal(await ground.seen(box, 'ulimit -n'), '100');
      await ground.sh(box, 'dd if=/dev/zero of=/tmp/big bs=2M count=1');
      assert.equal(await ground.seen(box, 'wc -c < /tmp/big'), '1048576');
      const error = await ground.refusal({ rlimits: [{ resource: 'core', soft: 2, hard: 1 }] });
      assert.equal(error.details.field, 'rlimits[0].soft');
    },
  ),
  claim(
    'spec.rlimits.hard',
    'How far a process may raise the limit',
    '`ulimit -H` inside, and that more is refused',
    async (ground) => {
      const box = await fullBox(ground);
      assert.equal(box.spec.rlimits[0].hard, 200);
      assert.equal(await ground.seen(box, 'ulimit -n 200; ulimit -Hn'), '200');
      assert.notEqual((await ground.sh(box, 'ulimit -n 300')).exit_code, 0);
    },
  ),
];
