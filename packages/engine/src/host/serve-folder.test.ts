import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { makeTestHost } from '../testing/test-host.ts';
import { ID_BASE, isServed, PLAIN_OWNER, served } from '../testing/test-served-folder.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const HOST_PACKAGE = fileURLToPath(new URL('../../../host', import.meta.url));
/** With AddressSanitizer: a server that errs ends, and the folder is gone. */
const ASAN = join(HOST_PACKAGE, 'build/svc-host-asan');

before(async () => {
  // Another file may build it too.
  await promisify(execFile)('flock', [HOST_PACKAGE, 'make', '-s', '-C', HOST_PACKAGE, 'asan']);
});

test('every guest user can own files, and the owner maps to that of the host, in folders and volumes, bound and served', async () => {
  for (const storedAs of ['folder', 'volume'] as const) {
    for (const quotaMib of [null, 8]) {
      await using host = await makeTestHost();
      const ownedBy = storedAs === 'volume' ? 0 : 4242;
      const owner = { storedAs, uid: 1000, gid: 1000, quotaMib };
      const folder = await served(host, owner, { ownedBy });
      assert.equal(isServed(host), storedAs === 'folder' || quotaMib !== null);
      await folder.sh('chmod 777 .', 1000);
      for (const uid of [0, 1, 999, 1000, 1001, 65_535])
        await folder.sh(`mkdir d${uid}; echo x > f${uid}`, uid);
      const shown = await folder.sh('stat -c %n:%u:%g before f* d*');
      const expected = [
        'before:1000:1000',
        'f0:0:0',
        'f1:1:1',
        'f1000:1000:1000',
        'f1001:1001:1001',
        'f65535:65535:65535',
        'f999:999:999',
      ];
      assert.deepEqual(shown.split('\n').slice(0, 7), expected);
      const stored = (name: string) => statSync(join(folder.host, name)).uid;
      assert.deepEqual(
        ['f0', 'f1', 'f1000', 'd1001'].map(stored),
        storedAs === 'volume' ? [1000, 1, 0, 1001] : [ID_BASE, ID_BASE + 1, 4242, ID_BASE + 1001],
      );
      await folder.sh('chown 1000:1000 f0 && chown 0:7 f1');
      assert.deepEqual(['f0', 'f1'].map(stored), storedAs === 'volume' ? [0, 1000] : [4242, ID_BASE]);
    }
  }
});

test('a folder that belongs to an id of the sandbox itself is shared out one to one as well', async () => {
  for (const quotaMib of [null, 8]) {
    await using host = await makeTestHost();
    const folder = await served(host, { uid: 1000, gid: 1000, quotaMib }, { ownedBy: ID_BASE + 5 });
    await folder.sh('chmod 777 .', 1000);
    for (const uid of [0, 5, 1000]) await folder.sh(`touch f${uid}`, uid);
    assert.equal(await folder.sh('stat -c %u before f0 f5 f1000'), '1000\n0\n5\n1000\n');
    const stored = ['f0', 'f5', 'f1000'].map((name) => statSync(join(folder.host, name)).uid - ID_BASE);
    assert.deepEqual(stored, [0, 1000, 5], 'the two have changed places');
  }
});

test('a guest can have more files open than the usual limit of a process', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 64 }, { ownedBy: 4242, binary: ASAN });
  const script = `python3 -c "
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
files = [open(str(index), 'w') for index in range(3000)]
for index, file in enumerate(files): file.write(str(index))
print(len(files))"`;
  assert.equal(await folder.sh(script), '3000\n');
  assert.equal(readFileSync(join(folder.host, '2999'), 'utf8'), '2999');
});

test('files of other host users show the overflow id, and cannot be taken over', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 8 }, { ownedBy: 4242 });
  for (const [name, uid] of [
    ['root', 0],
    ['other', 4243],
  ] as const) {
    writeFileSync(join(folder.host, name), 'secret', { mode: 0o600 });
    chownSync(join(folder.host, name), uid, uid);
  }
  assert.equal(await folder.sh('stat -c %u:%g root other; true'), '65534:65534\n65534:65534\n');
  const tries = await folder.sh('cat root; cat other; chown 0 root; chmod 777 other; echo x > root; true');
  assert.equal(tries.match(/Permission denied|not permitted/g)?.length, 5, tries);
  assert.equal(readFileSync(join(folder.host, 'root'), 'utf8'), 'secret');
});

test('a guest cannot leave a set-user-id program of root on the host, neither a new one nor an old one', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, {});
  assert.equal(isServed(host), true);
  writeFileSync(join(folder.host, 'old'), 'harmless');
  chmodSync(join(folder.host, 'old'), 0o4755);
  await folder.sh(
    'cp /bin/true new; chmod 6755 new; (umask 0; mkdir -m 7777 d); echo harmful > old; chmod 4755 old',
  );
  await folder.sh('chown 0:0 new; chmod u+s new; ln new linked; mv linked moved');
  for (const name of ['new', 'old', 'moved', 'd']) {
    const { mode, uid } = statSync(join(folder.host, name));
    assert.equal(mode & 0o4000, 0, `${name} is ${mode.toString(8)}`);
    assert.equal(uid, 0, 'written as the owner of the folder');
  }
  for (const name of ['new', 'old']) assert.equal(statSync(join(folder.host, name)).mode & 0o2000, 0);
  assert.equal(await folder.sh('cat old'), 'harmful\n');
  const value = "struct.pack('<IIIII', 0x02000001, 0xff, 0, 0, 0)";
  const capability = `python3 -c "import os, struct; os.setxattr('new', 'security.capability', ${value})"`;
  assert.match(await folder.sh(`${capability}; true`), /not supported/);
  assert.match(await folder.sh('mknod device c 1 3; true'), /not permitted/);
});

test('a guest writes up to its quota, gets an error beyond it, and can replace and delete files when it is full', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 4 }, { ownedBy: 4242, binary: ASAN });
  writeFileSync(join(folder.host, 'large'), Buffer.alloc(6 * MIB));
  chownSync(join(folder.host, 'large'), 4242, 4242);
  assert.match(await folder.sh('dd if=/dev/zero of=fill bs=64k count=200; true'), /Disk quota exceeded/);
  const taken = statSync(join(folder.host, 'fill')).blocks * 512;
  assert.ok(taken > 3.9 * MIB && taken <= 4 * MIB, String(taken));
  assert.match(await folder.sh('cp before more; true'), /Disk quota exceeded/);
  assert.match(await folder.sh('mkdir d1; mkdir d2; mkdir d3; true'), /Disk quota exceeded/);
  assert.match(await folder.sh('fallocate -l 8M fill; true'), /Disk quota exceeded/);
  const replaced = await folder.sh('dd if=/dev/urandom of=large bs=64k count=96 conv=notrunc && echo done');
  assert.match(replaced, /done/, 'what is there may be replaced');
  await folder.sh('rm fill');
  await waitUntil(async () => (await folder.used()) < 16 * KIB, 'it is given back');
  assert.match(await folder.sh('dd if=/dev/zero of=again bs=64k count=48 && echo done'), /done/);
  await folder.sh('truncate -s 1M again');
  await waitUntil(async () => (await folder.used()) < 1.1 * MIB, 'the end of it is given back');
});

test('sparse, empty and unnamed files count towards the quota with their allocated space', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 4 }, { ownedBy: 4242, binary: ASAN });
  await folder.sh('truncate -s 10G sparse');
  assert.ok((await folder.used()) < 16 * KIB);
  assert.match(
    await folder.sh('dd if=/dev/zero of=sparse bs=1M count=8 seek=5000 conv=notrunc; true'),
    /quota/,
  );
  await folder.sh('rm sparse');
  assert.match(await folder.sh('mkdir many; for i in $(seq 2000); do touch many/$i || break; done'), /quota/);
  const made = readdirSync(join(folder.host, 'many')).length;
  assert.ok(made > 900 && made <= 1024, String(made));
  await folder.sh('rm -r many');
  const unnamed =
    'exec 3> hidden; rm hidden; dd if=/dev/zero bs=1M count=3 >&3; echo "$(df --output=used -B1 . | tail -n1)"';
  assert.ok(Number((await folder.sh(unnamed)).split('\n').at(-2)) >= 3 * MIB);
  await waitUntil(async () => (await folder.used()) < 16 * KIB, 'the unnamed file is given back');
});

test('blocks that a file system adds at write-out are subtracted only if they were counted', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 4 }, { ownedBy: 4242, binary: ASAN });
  await folder.sh('dd if=/dev/zero of=kept bs=64k count=16');
  const scattered = `python3 -c "
file = open('scattered', 'wb')
for index in range(100): file.seek(index * 8192); file.write(bytes(4096))"`;
  for (let round = 0; round < 4; round++) {
    await folder.sh(scattered);
    const file = join(folder.host, 'scattered');
    await host.run('sync', file);
    // Another process may have called sync earlier.
    assert.ok(statSync(file).blocks * 512 > 100 * 4 * KIB, 'records were made');
    await folder.sh('rm scattered');
  }
  assert.ok((await folder.used()) >= statSync(join(folder.host, 'kept')).blocks * 512 + 4 * KIB);
});

test('after thousands of random operations of four processes the counted space is correct', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 16 }, { ownedBy: 4242, binary: ASAN });
  const seed = Number(process.env['SVC_FUZZ_SEED'] ?? Date.now() % 2 ** 31);
  await folder.sh('chmod 777 .');
  const script = join(host.folder, 'random.py');
  writeFileSync(script, RANDOM_OPERATIONS, { mode: 0o644 });
  const atFirst = statSync(folder.host).blocks * 512;
  await Promise.all([0, 1, 2, 3].map((worker) => folder.sh(`python3 ${script} ${seed + worker}`, worker)));
  const there = () => takenBelow(folder.host) + statSync(folder.host).blocks * 512 - atFirst;
  // Some records of a file system are made when it writes out.
  const isRight = async () => Math.abs((await folder.used()) - there()) <= 64 * KIB;
  await waitUntil(isRight, `the count is right (seed ${seed})`);
  assert.ok(there() <= 16 * MIB + 64 * KIB, `seed ${seed}`);
  await folder.sh('find . -mindepth 1 ! -name before -delete');
  await waitUntil(async () => (await folder.used()) <= 64 * KIB, 'all is given back');
});

const RANDOM_OPERATIONS = `
import os, random, sys
random.seed(int(sys.argv[1]))
held = []
def name(): return random.choice(['', 'd1/', 'd2/']) + 'f%d' % random.randrange(12)
def write():
    with open(name(), random.choice(['wb', 'ab'])) as file: file.write(bytes(random.randrange(400000)))
def patch():
    with open(name(), 'r+b') as file:
        file.seek(random.randrange(3000000)); file.write(b'x' * random.randrange(200000))
def hold():
    held.append(open(name(), 'a+b'))
    if len(held) > 4: held.pop(0).close()
def punch():
    with open(name(), 'r+b') as file: os.posix_fallocate(file.fileno(), random.randrange(100000), 1 + random.randrange(300000))
operations = [write, write, patch, hold, punch,
    lambda: os.unlink(name()), lambda: os.rename(name(), name()), lambda: os.link(name(), name()),
    lambda: os.truncate(name(), random.randrange(500000)), lambda: os.symlink('x' * random.randrange(1, 200), name()),
    lambda: os.mkdir(random.choice(['d1', 'd2'])), lambda: os.rmdir(random.choice(['d1', 'd2']))]
for _ in range(1500):
    try: random.choice(operations)()
    except OSError: pass
for file in held:
    try: file.close()
    except OSError: pass
`;

/** What all but the file `before` takes, each inode once. */
function takenBelow(folder: string): number {
  const taken = new Map<number, number>();
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const { ino, blocks } = lstatSync(join(folder, path));
    if (path !== 'before') taken.set(ino, blocks * 512 + 4 * KIB);
  }
  return [...taken.values()].reduce((sum, bytes) => sum + bytes, 0);
}

for (const statVirtualization of ['off', 'strict', 'relaxed'] as const)
  test(`a served folder is a folder like others: links, renames, times, long lists, maps, pipes (${statVirtualization})`, async () => {
    await using host = await makeTestHost();
    const folder = await served(host, { quotaMib: 64, statVirtualization }, { ownedBy: 4242, binary: ASAN });
    const script = `
    mkdir -p a/b; echo one > a/b/file; ln a/b/file a/hard; ln -s b/file a/soft; cat a/hard a/soft
    mv a/b/file a/moved; echo two >> a/moved; cat a/hard; stat -c %h a/hard
    touch -d @1000000000 a/moved; stat -c %Y a/moved; chmod 640 a/moved; stat -c %a a/moved
    mkfifo a/pipe; (echo through > a/pipe &); cat a/pipe
    mkdir list; for i in $(seq 3000); do : > list/entry-with-a-long-name-$i; done; ls list | wc -l
    mkdir g; chgrp 7 g; chmod 2775 g; mkdir g/h; touch g/x; stat -c %a:%g g g/h g/x; rm -r g
    cat before; ls a; rm -r a list; ls`;
    assert.equal(
      await folder.sh(script),
      'one\none\none\ntwo\n2\n1000000000\n640\nthrough\n3000\n2775:7\n2755:7\n644:7\nof the host\nb\nhard\nmoved\npipe\nsoft\nbefore\n',
    );
    assert.match(
      await folder.sh('rmdir before; mkdir before; cat absent; ls -d ..; true'),
      /Not a dir[^]*exists[^]*No such/,
    );
    const map = `python3 -c "
import mmap
file = open('mapped', 'w+b'); file.truncate(8192)
pages = mmap.mmap(file.fileno(), 8192); pages[5000:5005] = b'there'; pages.flush(); pages.close()"`;
    await folder.sh(map);
    assert.equal(readFileSync(join(folder.host, 'mapped')).subarray(5000, 5005).toString(), 'there');
    writeFileSync(join(folder.host, 'by-host'), 'seen\n', { mode: 0o644 });
    assert.equal(await folder.sh('cat by-host'), 'seen\n');
  });

test('a file can be served as well as a folder', async () => {
  await using host = await makeTestHost();
  const file = join(host.folder, 'file');
  writeFileSync(file, 'old');
  const [userPath, networkPath] = [join(host.folder, 'user'), join(host.folder, 'net')];
  await host.calls.createNamespaces({ userPath, networkPath, idBase: ID_BASE, link: null });
  const owner = { ...PLAIN_OWNER, quotaMib: 1 };
  const target = join(host.folder, 'guest');
  const idmap = { userPath, idBase: ID_BASE, owner };
  const kind = await host.calls.bind({ root: host.folder, path: 'file', target, readonly: false, idmap });
  assert.deepEqual(kind, { kind: 'file' });
  await host.run(
    'nsenter',
    `--user=${userPath}`,
    '-S0',
    '-G0',
    'sh',
    '-c',
    'echo new > "$1"; chmod 4755 "$1"',
    'sh',
    target,
  );
  assert.equal(readFileSync(file, 'utf8'), 'new\n');
  assert.equal(statSync(file).mode & 0o7777, 0o755);
});

test('a folder that cannot be served is refused, and leaves neither mount nor process', async () => {
  await using host = await makeTestHost();
  const at = (name: string) => join(host.folder, name);
  for (const name of ['lower', 'upper', 'work', 'overlay']) mkdirSync(at(name));
  const layers = `lowerdir=${at('lower')},upperdir=${at('upper')},workdir=${at('work')}`;
  await host.run('mount', '-t', 'overlay', '-o', layers, 'overlay', at('overlay'));
  await host.calls.createNamespaces({
    userPath: at('user'),
    networkPath: at('net'),
    idBase: ID_BASE,
    link: null,
  });
  const owner = { ...PLAIN_OWNER, quotaMib: 1 };
  const idmap = { userPath: at('user'), idBase: ID_BASE, owner };
  const bind = host.calls.bind({
    root: at('overlay'),
    path: '.',
    target: at('guest'),
    readonly: false,
    idmap,
  });
  await assert.rejects(bind, { errno: 'EIO' });
  assert.equal(isServed(host), false);
  await waitUntil(() => serversOf(at('overlay')).length === 0, 'no server is left');
});

test('the server outlives the helper that started it and ends with the mount', async () => {
  await using host = await makeTestHost();
  const folder = await served(host, { quotaMib: 2 });
  for (const pid of host.calls.pids) process.kill(pid, 'SIGKILL');
  await folder.sh('dd if=/dev/zero of=fill bs=64k count=16');
  assert.equal(serversOf(folder.host).length, 1);
  await host.calls.unmount(folder.guest);
  await waitUntil(() => serversOf(folder.host).length === 0, 'the server has ended');
});

/** Processes that hold the folder. */
function serversOf(folder: string): string[] {
  const { dev, ino } = statSync(folder);
  return readdirSync('/proc').filter((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--serve-folder')) return false;
      const held = statSync(`/proc/${pid}/fd/4`);
      return held.dev === dev && held.ino === ino;
    } catch {
      return false;
    }
  });
}
