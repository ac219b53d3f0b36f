import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeTestHost, type TestHost } from '../testing/test-host.ts';
import { ID_BASE, PLAIN_OWNER, served, type ServedFolder } from '../testing/test-served-folder.ts';

const HOST_USER = 4242;
const HOST_PACKAGE = fileURLToPath(new URL('../../../host', import.meta.url));
const ASAN = join(HOST_PACKAGE, 'build/svc-host-asan');

before(async () => {
  // Another file may build it too.
  await promisify(execFile)('flock', [HOST_PACKAGE, 'make', '-s', '-C', HOST_PACKAGE, 'asan']);
});

type Access = Pick<typeof PLAIN_OWNER, 'statVirtualization' | 'hostPermissions'>;
const STRICT = { statVirtualization: 'strict', hostPermissions: 'private' } as const;

const folderOf = (host: TestHost, access: Partial<Access> = {}, owner: Partial<typeof PLAIN_OWNER> = {}) =>
  served(host, { ...STRICT, ...access, ...owner }, { ownedBy: HOST_USER, binary: ASAN });

const modeOf = (folder: ServedFolder, name: string) =>
  (statSync(join(folder.host, name)).mode & 0o7777).toString(8);

/** Shows the folder once more, as the next run of a sandbox would. */
async function showAgain(host: TestHost, folder: ServedFolder, owner: Partial<typeof PLAIN_OWNER>) {
  await folder.calls.unmount(folder.guest);
  const idmap = { userPath: join(host.folder, 'user'), idBase: ID_BASE, owner: { ...PLAIN_OWNER, ...owner } };
  await folder.calls.bind({ root: folder.host, path: '.', target: folder.guest, readonly: false, idmap });
}

test('owner and mode that a guest sets stay with the file, and do not apply on the host', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host);
  chmodSync(join(folder.host, 'before'), 0o640);
  mkdirSync(join(folder.host, 'of-host'), { mode: 0o750 });
  chownSync(join(folder.host, 'of-host'), HOST_USER, HOST_USER);
  await folder.sh('chown 1000:7 before; chmod 6777 before; chown 5 of-host; chmod 1777 of-host');
  const shown = '6777 1000 7\n1777 5 0\n';
  assert.equal(await folder.sh('stat -c "%a %u %g" before of-host'), shown);
  const untouched = (name: string) => {
    const { uid, gid, mode } = statSync(join(folder.host, name));
    return [uid, gid, (mode & 0o7777).toString(8)];
  };
  assert.deepEqual(untouched('before'), [HOST_USER, HOST_USER, '640']);
  assert.deepEqual(untouched('of-host'), [HOST_USER, HOST_USER, '750']);
  await showAgain(host, folder, STRICT);
  assert.equal(await folder.sh('stat -c "%a %u %g" before of-host'), shown, 'also the next time');
  assert.equal(await folder.sh('cat before', 1000), 'of the host\n');
});

test('new files belong to the owner of the folder on the host, and to the creating user in the guest', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host);
  await folder.sh('chmod 777 .');
  await folder.sh(
    'umask 0; echo x > file; chmod 4711 file; mkdir -m 2770 sub; mkfifo pipe; ln -s file link',
    1001,
  );
  await folder.sh('umask 0; echo x > plain');
  const names = ['file', 'sub', 'pipe', 'plain'];
  for (const name of names) {
    const { uid, gid, mode } = statSync(join(folder.host, name));
    assert.deepEqual([uid, gid], [HOST_USER, HOST_USER], name);
    assert.equal(mode & 0o7022, 0, `${name} is ${mode.toString(8)}`);
  }
  assert.equal(
    await folder.sh('stat -c "%a %u %g" file sub pipe plain; stat -c %u link'),
    '4711 1001 1001\n2770 1001 1001\n666 1001 1001\n666 0 0\n1001\n',
  );
  await folder.sh('mkdir sub/below; : > sub/file');
  assert.equal(await folder.sh('stat -c "%a %g" sub/below sub/file'), '2755 1001\n644 1001\n');
});

test('mirrored, the ordinary bits of files and folders are set on the host as well, and no others', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host, { hostPermissions: 'mirror' });
  await folder.sh('chmod 6771 before; mkdir d; chmod 3775 d; mkfifo p; chmod 666 p; (umask 0; : > new)');
  assert.deepEqual(
    ['before', 'd', 'new'].map((name) => modeOf(folder, name)),
    ['771', '775', '666'],
  );
  assert.equal(await folder.sh('stat -c %a before d p new'), '6771\n3775\n666\n666\n');
  await folder.sh('chown 1000:1000 before');
  assert.equal(statSync(join(folder.host, 'before')).uid, HOST_USER);
});

test('without an overlay owner and mode are those of the host, except for set-user-id and set-group-id', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host, { statVirtualization: 'off' });
  // In this order: a change of the owner would clear the bits, too.
  await folder.sh('chown 1000:1000 before; chmod 6771 before; mkdir d; chmod 3775 d');
  assert.equal(await folder.sh('stat -c "%a %u" before d'), '771 1000\n3775 0\n');
  assert.deepEqual(
    ['before', 'd'].map((name) => modeOf(folder, name)),
    ['771', '3775'],
  );
  assert.equal(statSync(join(folder.host, 'before')).uid, ID_BASE + 1000);
});

test('strict is refused where the file system has no attributes; relaxed remembers while it is mounted', async () => {
  await using host = await makeTestHost();
  // A folder that is served has none itself.
  const folder = await folderOf(host, { statVirtualization: 'off' });
  await folder.sh('chmod 600 before');
  const target = join(host.folder, 'again');
  const userPath = join(host.folder, 'user');
  const bind = (access: Access) => {
    const idmap = { userPath, idBase: ID_BASE, owner: { ...PLAIN_OWNER, ...access } };
    return folder.calls.bind({ root: folder.guest, path: '.', target, readonly: false, idmap });
  };
  await assert.rejects(bind(STRICT), { errno: 'EOPNOTSUPP' });
  await bind({ ...STRICT, statVirtualization: 'relaxed' });
  const again = (script: string) => folder.sh(`cd ../again && ${script}`);
  assert.equal(
    await again('chown 1000:1000 before; chmod 4755 before; stat -c "%a %u" before'),
    '4755 1000\n',
  );
  const { mode, uid } = statSync(join(folder.host, 'before'));
  assert.deepEqual([mode & 0o7777, uid], [0o600, HOST_USER]);
  assert.equal(await again('umask 0; : > new; rm before; stat -c %a new'), '666\n');
  assert.equal(modeOf(folder, 'new'), '644');
  await folder.calls.unmount(target);
});

test('a forged attribute gives no access to files of another user, and an invalid one is ignored', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host);
  writeFileSync(join(folder.host, 'others'), 'secret', { mode: 0o600 });
  chownSync(join(folder.host, 'others'), 4243, 4243);
  const plant = (name: string, value: string) =>
    host.run(
      'python3',
      '-c',
      'import os, sys; os.setxattr(sys.argv[1], "user.svc.stat", sys.argv[2].encode())',
      join(folder.host, name),
      value,
    );
  await plant('others', '666 0 0');
  assert.match(await folder.sh('cat others; stat -c %a:%u others; true'), /denied\n600:65534/);
  for (const nonsense of [
    '',
    '9',
    '777',
    '777 0',
    '77777 0 0',
    '644 65536 0',
    '644 0 0 0',
    '644 -1 0',
    '- - ',
    'x'.repeat(60),
  ]) {
    await plant('before', nonsense);
    await showAgain(host, folder, STRICT);
    assert.equal(await folder.sh('stat -c "%a %u %g" before'), '644 0 0\n', nonsense);
  }
  await plant('before', '600 - 7');
  await showAgain(host, folder, { ...STRICT, uid: 1000, gid: 1000 });
  assert.equal(await folder.sh('stat -c "%a %u %g" before'), '600 1000 7\n', 'the rest is as on the host');
  assert.equal(readFileSync(join(folder.host, 'before'), 'utf8'), 'of the host\n');
});

test('a write clears the set-user-id bit, on the host and inside', async () => {
  await using host = await makeTestHost();
  const folder = await folderOf(host);
  chmodSync(join(folder.host, 'before'), 0o4755);
  await folder.sh('chmod 777 .; (umask 0; cp /bin/true mine); chmod 6777 mine');
  await folder.sh('echo harmful > before; echo harmful > mine', 1000);
  assert.equal(await folder.sh('echo harmful > before; stat -c %a mine before'), '777\n755\n');
  assert.equal(modeOf(folder, 'before'), '755');
});
