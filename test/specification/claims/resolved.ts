import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, type Claim } from '../claim.ts';
import { dataOf, type Ground, type Json } from '../ground.ts';
import { CONFIGURED, CONFIGURED_LABEL } from '../images.ts';
import { plainBox } from './record.ts';

/** Of an image that says how its processes run. */
async function configuredBox(ground: Ground): Promise<Json> {
  return await ground.shared('configured', () =>
    ground.running({ image: { type: 'oci', reference: CONFIGURED }, labels: { both: 'caller' } }),
  );
}

export const resolvedClaims: readonly Claim[] = [
  claim(
    'rule.spec-resolved',
    '`spec` in answers is what the sandbox really has, with what its image says',
    'the user, folder, command, environment and labels of an image that has them, as they are inside',
    async (ground) => {
      const { name, spec } = await configuredBox(ground);
      assert.deepEqual([spec.runtime.user, spec.runtime.workdir], ['user', '/srv']);
      assert.deepEqual([spec.runtime.entrypoint, spec.runtime.cmd], [['/bin/echo', 'entry'], ['default']]);
      assert.equal(spec.env.find(({ key }: Json) => key === 'FROM_IMAGE').value, 'yes');
      assert.deepEqual([spec.labels[CONFIGURED_LABEL], spec.labels['both']], ['image', 'caller']);
      assert.equal(await ground.seen({ name }, 'id -u; pwd; echo $FROM_IMAGE'), '1000\n/srv\nyes');
    },
  ),
  claim(
    'rule.spec-defaults',
    'It shows the defaults that are in force',
    'the disk, shell, hostname and policy of a sandbox that asked for nothing',
    async (ground) => {
      const box = await plainBox(ground);
      assert.equal(box.spec.resources.disk_size_mib, 4096);
      assert.equal(box.spec.runtime.shell, '/bin/sh');
      assert.equal(box.spec.runtime.hostname, await ground.seen(box, 'hostname'));
      assert.deepEqual(
        [box.spec.network.policy.default_egress, box.spec.network.policy.rules.length],
        ['deny', 2],
      );
    },
  ),
  claimOnce(
    'rule.spec-absent',
    'It is absent until the image is known, which is when the sandbox is first started',
    'the record of one that was only created',
    async (ground) => {
      assert.equal((await ground.create()).body.spec, undefined);
    },
  ),
  claim(
    'rule.vcpus-bound',
    'More CPUs, or more disk, than the host has are refused by field',
    'a create that asks for one more',
    async (ground) => {
      const vcpus = availableParallelism() + 1;
      assert.equal((await ground.refusal({ resources: { vcpus } })).details.field, 'resources.vcpus');
      const disk_size_mib = 16_777_216;
      assert.equal(
        (await ground.refusal({ resources: { disk_size_mib } })).details.field,
        'resources.disk_size_mib',
      );
    },
  ),
  claimOnce(
    'rule.config-whole',
    'Fields of `config` without an image are refused: a configuration is replaced as a whole',
    '-32602 with the field',
    async (ground) => {
      const { error } = await ground.rpc('sandbox.start', { sandbox: 'stored', config: { memory: 128 } });
      assert.deepEqual([error?.code, dataOf({ error }).field], [-32_602, 'config.memory']);
    },
  ),
  claimOnce(
    'create.isolation=microvm',
    'A machine of its own; a host that has none refuses it',
    'a create is 422 `isolation_unavailable`, and nothing is left of it',
    async (ground) => {
      const name = ground.fresh('vm');
      const { status, body } = await ground.create({ name, isolation: 'microvm' });
      assert.deepEqual([status, body.error?.code], [422, 'isolation_unavailable'], JSON.stringify(body));
      assert.equal((await ground.rest('GET', `/sandboxes/by-name/${name}`)).status, 404);
    },
    { state: 'refused', covers: ['error.isolation_unavailable'] },
  ),
  claimOnce(
    'create.init.cmd',
    'An init system of the image as the first process',
    'a create with it is 400 and names `init`; null is taken',
    async (ground) => {
      const init = { cmd: 'auto', args: ['--unit=multi-user.target'], env: [['K', 'V']] };
      assert.equal((await ground.refusal({ init })).details.field, 'init');
      assert.equal((await ground.create({ init: null })).status, 200);
    },
    { state: 'refused', covers: ['create.init', 'create.init.args', 'create.init.env'] },
  ),
];

export const grantedLimitClaims: readonly Claim[] = [
  claim(
    'rule.rlimits-unlimited',
    'The largest number of 64 bits means no limit',
    '`ulimit` inside says unlimited',
    async (ground) => {
      const body = JSON.stringify(ground.bodyOf({ rlimits: [{ resource: 'core', soft: 0, hard: 0 }] }));
      const unlimited = body
        .replace(/"soft":0,"hard":0/, '"soft":18446744073709551615,"hard":18446744073709551615')
        .replace('"core"', '"fsize"');
      const headers = { 'content-type': 'application/json' };
      const { body: box } = await ground.rest(
        'POST',
        '/sandboxes?start=true&wait_for=running&wait_timeout=90',
        { headers, body: Buffer.from(unlimited) },
      );
      assert.equal(box.status, 'running', JSON.stringify(box));
      assert.equal(await ground.seen(box, 'ulimit -f'), 'unlimited');
      await ground.remove(box.id);
    },
  ),
  claimOnce(
    'rule.rlimits-once',
    'A resource that is given twice is refused by field',
    'a create with two limits on open files',
    async (ground) => {
      const limit = { resource: 'nofile', soft: 10, hard: 10 };
      assert.match((await ground.refusal({ rlimits: [limit, limit] })).details.field, /^rlimits\[1\]/);
    },
  ),
  claim(
    'rule.rlimits-cpu',
    'A process that used up its CPU time is ended; class gvisor, which cannot do that, refuses the limit',
    'a loop under a limit of one second ends by a signal, or the refusal',
    async (ground) => {
      const rlimits = [{ resource: 'cpu', soft: 1, hard: 1 }];
      if (ground.isolation === 'gvisor') {
        assert.match((await ground.refusal({ rlimits })).message, /cpu is not kept by isolation gvisor/);
        return;
      }
      const box = await ground.running({ image: { type: 'oci', reference: BUSYBOX }, rlimits });
      const { exit_code: code } = await ground.sh(box, 'while :; do :; done');
      assert.ok(code >= 128, `${code}`);
      await ground.remove(box.id);
    },
  ),
];

/** Who runs, and where, is looked at when the sandbox starts. */
export const placeClaims: readonly Claim[] = [
  claim(
    'rule.workdir-made',
    'A working folder that the image lacks is made',
    '`pwd` inside',
    async (ground) => {
      const box = await ground.running({ runtime: { workdir: '/not/there/yet' } });
      assert.equal(await ground.seen(box, 'pwd'), '/not/there/yet');
      await ground.remove(box.id);
    },
  ),
  claim(
    'rule.user-known',
    'A user that the image does not know fails the start with the reason',
    'the message of the failure',
    async (ground) => {
      const { body } = await ground.create(
        { runtime: { user: 'nemo' } },
        '?start=true&wait_for=running&wait_timeout=90',
      );
      assert.equal(body.status, 'failed');
      assert.match(body.last_failure_message, /nemo/);
    },
  ),
];
