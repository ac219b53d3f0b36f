import assert from 'node:assert/strict';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { plainBox } from './record.ts';

/** A create with these fields and nothing else beside a name. */
async function createOnly(
  ground: Ground,
  fields: object,
): Promise<{ readonly status: number; readonly body: Json }> {
  return await ground.rest('POST', '/sandboxes', { body: { name: ground.fresh('box'), ...fields } });
}

/** Refused with the field and the reason. */
async function refuses(ground: Ground, fields: object, field: string): Promise<void> {
  const { status, body } = await createOnly(ground, fields);
  assert.deepEqual([status, body.error?.details?.field], [400, field], JSON.stringify(body));
  assert.ok(body.error.details.reason.length > 10);
}

const OTHER_ROOT = 'a create with it is 400 and names the field, with the reason';

export const sourceClaims: readonly Claim[] = [
  claimOnce(
    'create.name',
    'Its name: 1–128 letters, digits, dots, hyphens or underscores, the first a letter or digit',
    'the longest name is taken; an empty, a longer and a crooked one are refused by field',
    async (ground) => {
      const name = `a${'b._-'.repeat(31)}cde`;
      assert.equal(name.length, 128);
      assert.equal((await ground.create({ name })).body.name, name);
      for (const bad of ['', `${name}x`, '-a', 'a b', 'a/b']) {
        const { status, body } = await ground.create({ name: bad });
        assert.deepEqual([status, body.error.details.field], [400, 'name'], bad);
      }
    },
  ),
  claimOnce(
    'create.slug',
    'A chosen slug, unique on the server',
    'the answer has it; a second sandbox cannot, and a crooked one is refused by field',
    async (ground) => {
      const slug = ground.fresh('slug');
      assert.equal((await ground.create({ slug })).body.slug, slug);
      const again = await ground.create({ slug });
      assert.deepEqual([again.status, again.body.error.code], [409, 'name_already_exists']);
      assert.equal((await ground.refusal({ slug: 'A_b' })).details.field, 'slug');
    },
    { default: 'made up' },
  ),
  claim(
    'create.image.type',
    'What kind of root file system it begins with',
    'an image runs',
    async (ground) => {
      assert.equal(await ground.seen(await plainBox(ground), 'test -x /bin/busybox && echo there'), 'there');
    },
    { covers: ['create.image.type=oci'] },
  ),
  claimOnce(
    'create.image.reference',
    'The OCI image, by its reference',
    'the answer shows it; one that is no reference is an error',
    async (ground) => {
      assert.equal((await plainBox(ground)).spec.image, BUSYBOX);
      await refuses(ground, { image: { type: 'oci' } }, 'image.reference');
    },
  ),
  claimOnce(
    'create.image.type=bind',
    'A folder of the host as the root',
    OTHER_ROOT,
    async (ground) => {
      await refuses(ground, { image: { type: 'bind', path: 'root' } }, 'image.type');
    },
    { state: 'refused', covers: ['create.image.path'] },
  ),
  claimOnce(
    'create.image.type=disk_image',
    'A disk image as the root',
    OTHER_ROOT,
    async (ground) => {
      for (const format of ['qcow2', 'raw', 'vmdk'])
        await refuses(
          ground,
          { image: { type: 'disk_image', path: 'disk', format, fstype: 'ext4' } },
          'image.type',
        );
    },
    {
      state: 'refused',
      covers: [
        'create.image.format',
        'create.image.format=qcow2',
        'create.image.format=raw',
        'create.image.format=vmdk',
        'create.image.fstype',
      ],
    },
  ),
  claimOnce(
    'create.source',
    'The same in the newer shape, instead of `image`; not both',
    'both at once, and neither, are refused by field',
    async (ground) => {
      const image = { type: 'oci', reference: BUSYBOX };
      await refuses(ground, { image, source: 'oci', reference: BUSYBOX }, 'source');
      await refuses(ground, {}, 'image');
    },
  ),
  claimOnce(
    'create.source=oci',
    'An OCI image',
    'the sandbox has the image of `reference`',
    async (ground) => {
      const body = { name: ground.fresh('box'), source: 'oci', reference: BUSYBOX };
      const query = '?start=true&wait_for=running&wait_timeout=90';
      const { body: box } = await ground.rest('POST', `/sandboxes${query}`, { body });
      assert.deepEqual([box.status, box.spec?.image], ['running', BUSYBOX]);
      await ground.remove(box.id);
      await refuses(ground, { source: 'oci' }, 'reference');
    },
    { covers: ['create.reference'] },
  ),
  claimOnce(
    'create.source=bind',
    'A folder of the host as the root',
    OTHER_ROOT,
    async (ground) => {
      await refuses(ground, { source: 'bind', path: 'root' }, 'source');
    },
    { state: 'refused', covers: ['create.path'] },
  ),
  claimOnce(
    'create.source=disk_image',
    'A disk image as the root',
    OTHER_ROOT,
    async (ground) => {
      for (const format of ['qcow2', 'raw', 'vmdk'])
        await refuses(ground, { source: 'disk_image', path: 'disk', format, fstype: 'ext4' }, 'source');
    },
    {
      state: 'refused',
      covers: [
        'create.format',
        'create.format=qcow2',
        'create.format=raw',
        'create.format=vmdk',
        'create.fstype',
      ],
    },
  ),
  claim(
    'create.source=disk_snapshot',
    'A snapshot of another sandbox’s disk',
    'a file of the sandbox that the snapshot was made of is there',
    async (ground) => {
      const origin = await ground.running();
      await ground.seen(origin, 'echo before > /note; sync');
      await ground.stop(origin.id);
      const request = { kind: 'disk', sandbox_id: origin.id, name: ground.fresh('snap') };
      let { body: operation } = await ground.rest('POST', '/snapshots', { body: request });
      await ground.wait(async () => {
        operation = (await ground.rest('GET', `/snapshot-operations/${operation.id}`)).body;
        assert.notEqual(operation.status, 'failed', JSON.stringify(operation));
        return operation.status === 'succeeded';
      }, 'the snapshot');
      const { location } = operation.result;
      assert.equal(location.type, 'managed');
      const body = {
        name: ground.fresh('copy'),
        source: 'disk_snapshot',
        disk_snapshot_ref: location,
        resources: { memory_mib: 64 },
      };
      const { body: copy } = await ground.rest(
        'POST',
        '/sandboxes?start=true&wait_for=running&wait_timeout=90',
        { body },
      );
      assert.equal(copy.status, 'running', JSON.stringify(copy));
      assert.equal(await ground.seen(copy, 'cat /note'), 'before');
      for (const { id } of [origin, copy]) await ground.remove(id);
    },
    {
      covers: [
        'create.disk_snapshot_ref.type',
        'create.disk_snapshot_ref.type=managed',
        'create.disk_snapshot_ref.id',
      ],
    },
  ),
  claimOnce(
    'create.disk_snapshot_ref.type=host_volume',
    'A snapshot that is a file in the host volume',
    OTHER_ROOT,
    async (ground) => {
      const disk_snapshot_ref = { type: 'host_volume', path: 'snap' };
      await refuses(ground, { source: 'disk_snapshot', disk_snapshot_ref }, 'disk_snapshot_ref.type');
    },
    { state: 'refused', covers: ['create.disk_snapshot_ref.path'] },
  ),
];

export const choiceClaims: readonly Claim[] = [
  claim(
    'create.isolation',
    'The class that must isolate it',
    'a sandbox that asks for the class of this run has it',
    async (ground) => {
      const box = await ground.running({ isolation: ground.isolation });
      assert.equal(box.isolation, ground.isolation);
      assert.equal((await ground.server.engine.client.getSandbox(box.id)).isolation, ground.isolation);
      await ground.remove(box.id);
    },
    { covers: ['create.isolation=gvisor', 'create.isolation=container'] },
  ),
  claim(
    'create.isolation=auto',
    'The default class of the server: the strongest that the host has, unless its operator chose',
    'a sandbox that asks for it has the class of `--isolation`',
    async (ground) => {
      const { body } = await ground.create(
        { isolation: 'auto' },
        '?start=true&wait_for=running&wait_timeout=90',
      );
      assert.equal(body.isolation, ground.isolation);
      await ground.remove(body.id);
    },
  ),
  claim(
    'create.security_profile',
    'How much root may do inside',
    'the capabilities of a process, with `restricted` and without',
    async (ground) => {
      const capabilities = async (box: Json) =>
        BigInt(`0x${await ground.seen(box, `sed -n 's/^CapEff:\\s*//p' /proc/self/status`)}`);
      assert.notEqual(await capabilities(await plainBox(ground)), 0n);
      const box = await ground.running({ security_profile: 'restricted' });
      assert.equal(await capabilities(box), 0n);
      assert.notEqual((await ground.sh(box, 'chown 1000 /tmp')).exit_code, 0);
      await ground.remove(box.id);
    },
    {
      default: '`default`',
      covers: ['create.security_profile=default', 'create.security_profile=restricted'],
    },
  ),
];
