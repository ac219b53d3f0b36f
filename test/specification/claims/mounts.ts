import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile as readLocalFile, writeFile as writeLocalFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { claim, type Claim } from '../claim.ts';
import { FILE_PATH_HEADER } from '@svc/contract/rest';
import type { Ground, Json } from '../ground.ts';

const run = promisify(execFile);
const MIB = 1024 * 1024;

function pathHeader(path: string): Record<string, string> {
  return { [FILE_PATH_HEADER]: Buffer.from(path).toString('base64url') };
}

/** Of the organization's own volume, in which binds are looked up. */
export async function hostVolume(ground: Ground): Promise<string> {
  const { body } = await ground.rest('GET', '/volumes/default');
  return body.id;
}

export async function writeFile(
  ground: Ground,
  volume: string,
  path: string,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<void> {
  const parts = { headers: pathHeader(path), body: Buffer.from(content) };
  const { status, body } = await ground.rest('PUT', `/volumes/${volume}/files/content`, parts);
  assert.equal(status, 200, JSON.stringify(body));
}

export async function makeFolder(ground: Ground, volume: string, path: string): Promise<void> {
  const { status, body } = await ground.rest('POST', `/volumes/${volume}/files/mkdir`, { body: { path } });
  assert.equal(status, 200, JSON.stringify(body));
}

async function readFile(ground: Ground, volume: string, path: string): Promise<string> {
  const { body } = await ground.rest('GET', `/volumes/${volume}/files/content`, {
    headers: pathHeader(path),
  });
  return String(body);
}

async function statFile(ground: Ground, volume: string, path: string): Promise<Json> {
  const { body } = await ground.rest('GET', `/volumes/${volume}/files/stat`, { headers: pathHeader(path) });
  return body.metadata;
}

interface Mounted {
  readonly box: Json;
  readonly host: string;
  readonly volume: { readonly id: string; readonly name: string };
}

const OWNER = { override_uid: 1000, override_gid: 1000 };
const INERT = { noexec: true };
const SAFE = { nosuid: true, nodev: true };

/** A sandbox with a mount of every type and option. */
async function mounted(ground: Ground): Promise<Mounted> {
  return await ground.shared('mounted', async () => {
    const host = await hostVolume(ground);
    for (const path of ['bound', 'capped', 'owned']) {
      await makeFolder(ground, host, path);
      await writeFile(ground, host, `${path}/file`, 'of the caller\n');
    }
    const { body: volume } = await ground.rest('POST', '/volumes', { body: { name: ground.fresh('vol') } });
    await writeFile(ground, volume.id, 'file', 'in the volume\n');
    const named = { type: 'named', name: volume.name };
    const bind = { type: 'bind', host: 'bound' };
    const mounts = [
      { ...bind, guest: '/bind' },
      { ...bind, host: 'capped', guest: '/capped', quota_mib: 4 },
      { ...bind, host: 'owned', guest: '/owned', options: OWNER },
      { ...bind, guest: '/bind-fixed', options: { readonly: true } },
      { ...bind, guest: '/bind-inert', options: INERT },
      { ...bind, guest: '/bind-safe', options: SAFE },
      { ...named, guest: '/vol' },
      { ...named, guest: '/vol-fixed', options: { readonly: true } },
      { ...named, guest: '/vol-inert', options: INERT },
      { ...named, guest: '/vol-safe', options: SAFE },
      { ...named, guest: '/vol-owned', options: OWNER },
      { type: 'tmpfs', guest: '/small', size_mib: 2 },
      { type: 'tmpfs', guest: '/small/below', size_mib: 1 },
      { type: 'tmpfs', guest: '/tmpfs-fixed', options: { readonly: true } },
      { type: 'tmpfs', guest: '/tmpfs-inert', options: INERT },
      { type: 'tmpfs', guest: '/tmpfs-safe', options: SAFE },
    ];
    return { box: await ground.running({ mounts }), host, volume };
  });
}

/** The view of the mount at a place. */
function viewOf({ box }: Mounted, guest: string): Json {
  return box.spec.mounts.find((mount: Json) => mount.guest === guest);
}

const PLACES = ['/bind', '/vol', '/tmpfs'];

export const mountClaims: readonly Claim[] = [
  claim(
    'spec.mounts.type',
    'What is mounted; answers write it with capitals',
    'the views of the mounts of a sandbox that has several',
    async (ground) => {
      const types = (await mounted(ground)).box.spec.mounts.map(({ type }: Json) => type);
      assert.deepEqual(new Set(types), new Set(['Bind', 'Named', 'Tmpfs']));
    },
  ),
  claim(
    'spec.mounts.type=bind',
    'A file or folder of the host volume of the organization, live',
    'what the file API wrote is read inside, and the other way round',
    async (ground) => {
      const { box, host } = await mounted(ground);
      assert.equal(await ground.seen(box, 'cat /bind/file'), 'of the caller');
      await ground.seen(box, 'echo from inside > /bind/new');
      assert.equal(await readFile(ground, host, 'bound/new'), 'from inside\n');
    },
    { covers: ['spec.mounts.type=Bind'] },
  ),
  claim(
    'spec.mounts.type=named',
    'A volume, shared and persistent',
    'what the file API wrote is read inside, the other way round, and by a second sandbox',
    async (ground) => {
      const { box, volume } = await mounted(ground);
      assert.equal(await ground.seen(box, 'cat /vol/file'), 'in the volume');
      await ground.seen(box, 'echo from inside > /vol/new');
      assert.equal(await readFile(ground, volume.id, 'new'), 'from inside\n');
      const second = await ground.running({ mounts: [{ type: 'named', name: volume.name, guest: '/v' }] });
      assert.equal(await ground.seen(second, 'cat /v/new'), 'from inside');
      await ground.remove(second.id);
    },
    { covers: ['spec.mounts.type=Named'] },
  ),
  claim(
    'spec.mounts.type=tmpfs',
    'Memory of the sandbox, empty at each start',
    'it is a file system of its own, and empty',
    async (ground) => {
      const { box } = await mounted(ground);
      assert.match(await ground.seen(box, 'grep " /small " /proc/mounts'), /tmpfs/);
      assert.equal(await ground.seen(box, 'ls /tmpfs-inert'), '');
    },
    { covers: ['spec.mounts.type=Tmpfs'] },
  ),
  claim(
    'spec.mounts.guest',
    'Where it is seen, an absolute path; parents are mounted before what is below them',
    'a mount below a mount is there; what would cover the system or climb is refused',
    async (ground) => {
      const { box } = await mounted(ground);
      assert.equal(
        await ground.seen(box, 'df -k /small/below | tail -n 1 | tr -s " " | cut -d" " -f2'),
        '1024',
      );
      for (const guest of ['/proc/x', '/a/../b', '/', '/.svc/x']) {
        const error = await ground.refusal({ mounts: [{ type: 'tmpfs', guest }] });
        assert.equal(error.details.field, 'mounts[0].guest', guest);
      }
    },
  ),
  claim(
    'spec.mounts.host',
    'Where in the host volume a bind comes from, relative to it',
    'a file deep in it is bound; an absolute path of the host is refused with the reason',
    async (ground) => {
      const { box } = await mounted(ground);
      assert.equal(await ground.seen(box, 'cat /owned/file'), 'of the caller');
      const error = await ground.refusal({ mounts: [{ type: 'bind', host: '/etc', guest: '/x' }] });
      assert.equal(error.details.field, 'mounts[0].host');
      assert.match(error.details.reason, /relative/);
    },
  ),
  claim(
    'spec.mounts.name',
    'The volume that is mounted, by its name',
    'its file is there; a name that no volume has is 404 `volume_not_found`',
    async (ground) => {
      const { box } = await mounted(ground);
      assert.equal(await ground.seen(box, 'cat /vol-fixed/file'), 'in the volume');
      const { status, body } = await ground.create({
        mounts: [{ type: 'named', name: 'nobodys', guest: '/x' }],
      });
      assert.deepEqual([status, body.error.code], [404, 'volume_not_found']);
    },
  ),
  claim(
    'spec.mounts.options.readonly',
    'Nothing can be written there',
    'a write to each type of mount is refused inside, and works where it is not set',
    async (ground) => {
      const all = await mounted(ground);
      for (const place of PLACES) {
        assert.equal(viewOf(all, `${place}-fixed`).options.readonly, true);
        assert.match((await ground.sh(all.box, `touch ${place}-fixed/x`)).error, /Read-only/, place);
      }
      assert.equal(viewOf(all, '/bind').options.readonly, false);
      assert.equal((await ground.sh(all.box, 'touch /bind/x /vol/x')).exit_code, 0);
    },
    { default: '`false`' },
  ),
  claim(
    'spec.mounts.options.noexec',
    'No program there can be run by its path',
    'a copy of a program is refused on each type of mount, and runs where it is not set',
    async (ground) => {
      const all = await mounted(ground);
      const run = (place: string) =>
        ground.sh(all.box, `cp /bin/busybox ${place}/busybox && ${place}/busybox true`);
      for (const place of PLACES) {
        assert.equal(viewOf(all, `${place}-inert`).options.noexec, true);
        assert.match((await run(`${place}-inert`)).error, /Permission denied/, place);
      }
      assert.equal((await run('/vol')).exit_code, 0);
    },
    { default: '`false`' },
  ),
  claim(
    'spec.mounts.options.override_uid',
    'Shows what the caller put there as of this user',
    '`stat` inside on a bind and on a volume; without the group it is refused',
    async (ground) => {
      const all = await mounted(ground);
      for (const place of ['/owned', '/vol-owned']) {
        assert.equal(viewOf(all, place).options.override_uid, 1000);
        assert.equal(await ground.seen(all.box, `stat -c %u ${place}/file`), '1000', place);
      }
      assert.equal(await ground.seen(all.box, 'stat -c %u /vol/file'), '0');
      const options = { override_uid: 1000 };
      const error = await ground.refusal({ mounts: [{ type: 'bind', host: 'bound', guest: '/x', options }] });
      assert.equal(error.details.field, 'mounts[0].options');
    },
    { default: 'none' },
  ),
  claim(
    'spec.mounts.options.override_gid',
    'Shows what the caller put there as of this group',
    '`stat` inside on a bind and on a volume',
    async (ground) => {
      const all = await mounted(ground);
      for (const place of ['/owned', '/vol-owned']) {
        assert.equal(viewOf(all, place).options.override_gid, 1000);
        assert.equal(await ground.seen(all.box, `stat -c %g ${place}/file`), '1000', place);
      }
    },
    { default: 'none' },
  ),
  claim(
    'spec.mounts.quota_mib',
    'How many MiB the guest may add to a bind',
    'a write that is larger ends with an error, and what is stored is the quota at most',
    async (ground) => {
      const all = await mounted(ground);
      assert.equal(viewOf(all, '/capped').quota_mib, 4);
      const { error } = await ground.sh(all.box, 'dd if=/dev/zero of=/capped/fill bs=1M count=20');
      assert.match(error, /quota exceeded/i);
      const { size } = await statFile(ground, all.host, 'capped/fill');
      assert.ok(size > 3.5 * MIB && size <= 4 * MIB, `${size}`);
    },
    { default: 'no limit' },
  ),
  claim(
    'spec.mounts.size_mib',
    'How large a tmpfs is, in MiB',
    'a write that is larger ends with an error after that many bytes',
    async (ground) => {
      const all = await mounted(ground);
      assert.equal(viewOf(all, '/small').size_mib, 2);
      assert.match(
        (await ground.sh(all.box, 'dd if=/dev/zero of=/small/fill bs=1M count=9')).error,
        /No space left/,
      );
      assert.equal(await ground.seen(all.box, 'wc -c < /small/fill'), String(2 * MIB));
    },
    { default: 'the memory of the sandbox' },
  ),
];

/** Prints whose rights it has. */
const PROGRAM =
  '#include <stdio.h>\n#include <unistd.h>\nint main(void) { return printf("%d\\n", geteuid()) < 0; }\n';

export const flagClaims: readonly Claim[] = [
  claim(
    'spec.mounts.options.nosuid',
    'No program there gains the rights of its owner',
    'a set-user-id program of root that another user runs on each type of mount has the rights of that user',
    async (ground) => {
      const all = await mounted(ground);
      const source = join(ground.folder, 'euid.c');
      await writeLocalFile(source, PROGRAM);
      await run('cc', ['-static', '-o', `${source}.out`, source]);
      await writeFile(ground, all.volume.id, 'euid', await readLocalFile(`${source}.out`));
      for (const place of PLACES) {
        assert.equal(viewOf(all, `${place}-safe`).options.nosuid, true);
        const script = `cp /vol/euid ${place}-safe/set; chmod 6755 ${place}-safe/set; su user -c ${place}-safe/set`;
        assert.equal(await ground.seen(all.box, script), '1000', place);
      }
    },
  ),
  claim(
    'spec.mounts.options.nodev',
    'No device of the host works there',
    'a device file of a disk of the host, if it can be made at all, cannot be read on each type of mount',
    async (ground) => {
      const all = await mounted(ground);
      for (const place of PLACES) {
        assert.equal(viewOf(all, `${place}-safe`).options.nodev, true);
        const script = `mknod ${place}-safe/disk b 7 0; head -c 1 ${place}-safe/disk`;
        assert.notEqual((await ground.sh(all.box, script)).exit_code, 0, place);
      }
    },
  ),
];
