import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { createGunzip, gzipSync } from 'node:zlib';
import { waitUntil } from '@svc/contract/testing';
import { PlatformError } from '@svc/contract/errors';
import { digestOf } from './digest.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from './image-limits.ts';
import { tarOf, type TestEntry } from '../testing/test-layers.ts';
import { unpackLayer } from './unpack-layer.ts';

const run = promisify(execFile);

suite('unpacking a layer', () => {
  test('files keep content, owner, mode and time, and the digest is that of the archive', async (t) => {
    const { folder } = await workplace(t);
    const tar = await tarOf([
      { name: './', mode: 0o711 },
      { name: 'etc/', uid: 3, gid: 4, mode: 0o750 },
      { name: 'etc/shadow', body: 'x', mode: 0o000, mtime: new Date(1_000_000_000_000), uid: 65_535 },
      { name: `etc/${'long'.repeat(50)}`, body: 'y' },
      { name: 'etc/Főtanúsítvány', body: 'z' },
    ]);
    const layer = await unpack(tar, folder);
    assert.equal(layer.diffId, digestOf(tar));
    assert.deepEqual({ ...layer, diffId: '' }, { diffId: '', entries: 5, unpackedBytes: 3, dropped: 0 });
    assert.equal((await stat(folder)).mode & 0o7777, 0o711);
    const etc = await stat(join(folder, 'etc'));
    assert.deepEqual([etc.uid, etc.gid, etc.mode & 0o7777], [3, 4, 0o750]);
    const shadow = await stat(join(folder, 'etc/shadow'));
    assert.deepEqual([shadow.uid, shadow.mode & 0o7777, shadow.mtimeMs], [65_535, 0, 1_000_000_000_000]);
    assert.equal((await readdir(join(folder, 'etc'))).length, 3);
    assert.equal(await readFile(join(folder, 'etc/Főtanúsítvány'), 'utf8'), 'z');
  });

  test('symbolic links stay as they are, hard links share their file', async (t) => {
    const { folder } = await workplace(t);
    const tar = await tarOf([
      { name: 'file', body: 'x' },
      { name: 'hard', type: 'link', linkname: './file' },
      { name: 'absolute', type: 'symlink', linkname: '/etc/passwd' },
      { name: 'upwards', type: 'symlink', linkname: '../../../etc/passwd' },
    ]);
    await unpack(tar, folder);
    assert.equal((await stat(join(folder, 'hard'))).ino, (await stat(join(folder, 'file'))).ino);
    assert.equal(await readlink(join(folder, 'absolute')), '/etc/passwd');
    assert.equal(await readlink(join(folder, 'upwards')), '../../../etc/passwd');
  });

  test('whiteouts and opaque folders hide what lies below, seen through a real overlay', async (t) => {
    const { base } = await workplace(t);
    const lower = await folderIn(base, 'lower');
    const upper = await folderIn(base, 'upper');
    const merged = await folderIn(base, 'merged');
    const below = ['gone', 'kept', 'opaque/old', 'replaced/old', 'file'].map((name) => ({
      name,
      body: 'below',
    }));
    await unpack(await tarOf(below), lower);
    const above = [
      { name: '.wh.gone', body: '' },
      { name: 'opaque/', uid: 7 },
      { name: 'opaque/new', body: 'above' },
      { name: 'opaque/.wh..wh..opq', body: '' },
      { name: '.wh.replaced', body: '' },
      { name: 'replaced/new', body: 'above' },
      { name: '.wh.file', body: '' },
      { name: 'file', body: 'above' },
    ];
    await unpack(await tarOf(above), upper);
    const script =
      'mount -t overlay overlay -o "lowerdir=$1:$2" "$3" && cd "$3" && find . -type f | sort && cat file && stat -c %u opaque';
    const { stdout } = await run('unshare', ['-m', 'sh', '-ec', script, 'sh', upper, lower, merged]);
    assert.deepEqual(stdout.trim().split('\n'), [
      './file',
      './kept',
      './opaque/new',
      './replaced/new',
      'above7',
    ]);
  });

  test('an archive without padding behind the last file is read, one that ends inside a file is not', async (t) => {
    const { folder, base } = await workplace(t);
    const tar = await tarOf([{ name: 'a', body: 'x'.repeat(600) }]);
    await unpack(tar.subarray(0, 512 + 600), folder);
    assert.equal((await stat(join(folder, 'a'))).size, 600);
    await refuses(unpack(tar.subarray(0, 512 + 599), await folderIn(base, 'other')), /not an intact tar/);
    await refuses(unpack(Buffer.alloc(2000, 'x'), await folderIn(base, 'third')), /not an intact tar/);
  });

  test('an abort ends the work and every process of it', async (t) => {
    const { folder } = await workplace(t);
    const abort = new AbortController();
    const tar = await tarOf([{ name: 'a', body: Buffer.alloc(1024 * 1024) }]);
    async function* endless() {
      yield tar.subarray(0, 512 * 1024);
      abort.abort(new Error('enough'));
      yield tar.subarray(512 * 1024);
    }
    await assert.rejects(unpackLayer(endless(), folder, DEFAULT_IMAGE_LIMITS, abort.signal), /enough/);
  });
});

suite('a hostile layer', () => {
  const hostile: readonly (readonly [string, readonly TestEntry[], RegExp])[] = [
    ['a name that climbs out', [{ name: '../outside/evil', body: 'x' }], /name with \.\./],
    ['a name that climbs out from inside', [{ name: 'a/../../outside/evil', body: 'x' }], /name with \.\./],
    ['an absolute name', [{ name: '/tmp/svc-evil', body: 'x' }], /absolute name/],
    [
      'a file written through an absolute symbolic link',
      [
        { name: 'link', type: 'symlink', linkname: '/tmp' },
        { name: 'link/svc-evil', body: 'x' },
      ],
      /below a symlink/,
    ],
    [
      'a file written through a symbolic link with ..',
      [
        { name: 'link', type: 'symlink', linkname: '../outside' },
        { name: 'link/evil', body: 'x' },
      ],
      /below a symlink/,
    ],
    [
      'a file written through a hard link to a symbolic link',
      [
        { name: 'link', type: 'symlink', linkname: '../outside' },
        { name: 'twin', type: 'link', linkname: 'link' },
        { name: 'twin/evil', body: 'x' },
      ],
      /below a symlink/,
    ],
    [
      'a folder that becomes a symbolic link',
      [
        { name: 'a/b', body: 'x' },
        { name: 'a', type: 'symlink', linkname: '../outside' },
        { name: 'a/evil', body: 'x' },
      ],
      /as directory and as symlink/,
    ],
    [
      'a symbolic link that becomes a file',
      [
        { name: 'a', type: 'symlink', linkname: '../outside/witness' },
        { name: 'a', body: 'evil' },
      ],
      /as symlink and as file/,
    ],
    [
      'a whiteout below a symbolic link',
      [
        { name: 'a', type: 'symlink', linkname: '../outside' },
        { name: 'a/.wh.witness', body: '' },
      ],
      /below a symlink/,
    ],
    ['a whiteout that climbs out', [{ name: '.wh...', body: '' }], /name with \.\./],
    [
      'an opaque marker below a symbolic link',
      [
        { name: 'a', type: 'symlink', linkname: '../outside' },
        { name: 'a/.wh..wh..opq', body: '' },
      ],
      /as symlink and as directory/,
    ],
    [
      'a hard link that climbs out',
      [{ name: 'a', type: 'link', linkname: '../outside/witness' }],
      /hard link target with \.\./,
    ],
    [
      'an absolute hard link',
      [{ name: 'a', type: 'link', linkname: '/etc/passwd' }],
      /absolute hard link target/,
    ],
    [
      'a hard link to what the layer does not hold',
      [{ name: 'a', type: 'link', linkname: 'etc/passwd' }],
      /does not hold/,
    ],
    ['a name that is too long', [{ name: 'a'.repeat(256), body: 'x' }], /too long/],
    ['folders nested too deeply', [{ name: 'a/'.repeat(300) + 'b', body: 'x' }], /too deeply/],
  ];
  for (const [title, entries, reason] of hostile) {
    test(`${title} is refused`, async (t) => {
      const { folder, outside } = await workplace(t);
      await refuses(unpack(await tarOf(entries), folder), reason);
      assert.deepEqual(await readdir(outside), ['witness']);
      assert.equal(await readFile(join(outside, 'witness'), 'utf8'), 'untouched');
      await assert.rejects(lstat('/tmp/svc-evil'));
    });
  }

  test('device nodes and FIFOs do not reach the disk, nor do links to them', async (t) => {
    const { folder } = await workplace(t);
    const layer = await unpack(
      await tarOf([
        { name: 'dev/mem', type: 'character-device', devmajor: 1, devminor: 1 },
        { name: 'dev/sda', type: 'block-device', devmajor: 8, devminor: 0 },
        { name: 'dev/whiteout', type: 'character-device', devmajor: 0, devminor: 0 },
        { name: 'dev/pipe', type: 'fifo' },
        { name: 'dev/again', type: 'link', linkname: 'dev/sda' },
        { name: 'dev/file', body: 'x' },
      ]),
      folder,
    );
    assert.deepEqual(await readdir(join(folder, 'dev')), ['file']);
    assert.equal(layer.dropped, 5);
  });

  test('setuid bits stay in the mode: mounts are nosuid, so they do nothing', async (t) => {
    const { folder } = await workplace(t);
    await unpack(await tarOf([{ name: 'su', body: 'x', mode: 0o4755 }]), folder);
    assert.equal((await stat(join(folder, 'su'))).mode & 0o7777, 0o4755);
  });

  test('attributes that would steer the overlay or grant capabilities are left out', async (t) => {
    const { folder } = await workplace(t);
    const pax = {
      'SCHILY.xattr.trusted.overlay.redirect': '/etc',
      'SCHILY.xattr.user.overlay.redirect': '/etc',
      'SCHILY.xattr.security.capability': 'xxxx',
      'SCHILY.xattr.user.note': 'hello',
    };
    await unpack(await tarOf([{ name: 'a', body: 'x', pax }]), folder);
    // tar is the one tool here that prints attributes.
    const { stdout } = await run('sh', [
      '-c',
      'tar -C "$1" --xattrs --xattrs-include="*" -c a | tar -tvv --xattrs',
      'sh',
      folder,
    ]);
    const names = stdout.split('\n').filter((line) => line.trim().startsWith('x:'));
    assert.deepEqual(
      names.map((line) => line.trim().split(/\s+/).at(-1)),
      ['user.note'],
    );
  });

  test('ids that no sandbox can map become the overflow id', async (t) => {
    const { folder } = await workplace(t);
    const pax = { uid: '100000', gid: '4294967295' };
    await unpack(
      await tarOf([
        { name: 'a', body: 'x', uid: 70_000, gid: 65_536 },
        { name: 'b', body: 'x', pax },
      ]),
      folder,
    );
    for (const name of ['a', 'b']) {
      const { uid, gid } = await stat(join(folder, name));
      assert.deepEqual([uid, gid], [65_534, 65_534]);
    }
  });

  test('four gigabytes of zeros in a small file stop at the limit', async (t) => {
    const { folder } = await workplace(t);
    const limits = { ...DEFAULT_IMAGE_LIMITS, maxUnpackedBytes: 64 * 1024 ** 2 };
    const zeros = gzipSync(Buffer.alloc(64 * 1024 ** 2));
    const header = (await tarOf([{ name: 'zeros', body: '' }])).subarray(0, 512);
    const bomb = Buffer.concat([
      gzipSync(sized(header, 4 * 1024 ** 3)),
      ...Array.from({ length: 64 }, () => zeros),
    ]);
    assert.ok(bomb.length < 8 * 1024 ** 2);
    await refuses(
      unpackLayer(gunzip(bomb), folder, limits, AbortSignal.timeout(100_000)),
      /bytes once unpacked/,
    );
    const hidden = Buffer.concat([
      gzipSync(await tarOf([{ name: 'a', body: 'x' }])),
      ...Array.from({ length: 64 }, () => zeros),
    ]);
    const few = { ...limits, maxEntries: 10 };
    await refuses(
      unpackLayer(gunzip(hidden), folder, few, AbortSignal.timeout(100_000)),
      /bytes once unpacked/,
    );
  });

  test('more files than the limit are refused', async (t) => {
    const { folder } = await workplace(t);
    const entries = Array.from({ length: 1001 }, (_, index) => ({ name: `f${index}`, body: '' }));
    await refuses(unpack(await tarOf(entries), folder, { maxEntries: 1000 }), /more than 1000 files/);
    // Ten names, but a thousand parent folders that tar would make.
    const deep = Array.from({ length: 10 }, (_, index) => ({
      name: `${Array.from({ length: 100 }, () => `d${index}`).join('/')}/f`,
      body: '',
    }));
    await refuses(unpack(await tarOf(deep), folder, { maxEntries: 1000 }), /more than 1000 files/);
  });

  test('a disk that runs full stops it with a reason', async (t) => {
    const { folder } = await workplace(t);
    const tar = await tarOf([{ name: 'a', body: Buffer.alloc(80 * 1024 ** 2) }]);
    await assert.rejects(unpack(tar, folder, { minFreeBytes: Number.MAX_SAFE_INTEGER }), (error) =>
      PlatformError.is(error, 'insufficient_storage'),
    );
  });

  test('a sparse file is refused with what to do', async (t) => {
    const { folder } = await workplace(t);
    const tar = await tarOf([{ name: 'a', body: 'x', pax: { 'GNU.sparse.major': '1' } }]);
    await refuses(unpack(tar, folder), /without --sparse/);
  });
});

interface Workplace {
  readonly base: string;
  readonly folder: string;
  /** Beside the folder, where a hostile archive would like to write. */
  readonly outside: string;
}

async function workplace(t: TestContext): Promise<Workplace> {
  const base = await mkdtemp(join(tmpdir(), 'svc-unpack-'));
  t.after(async () => {
    await waitUntil(async () => {
      const { stdout } = await run('ps', ['-eo', 'args']);
      return !stdout.includes(base);
    }, 'no process is left');
    await rm(base, { recursive: true, force: true });
  });
  const outside = await folderIn(base, 'outside');
  await writeFile(join(outside, 'witness'), 'untouched');
  return { base, folder: await folderIn(base, 'layer'), outside };
}

async function folderIn(base: string, name: string): Promise<string> {
  await mkdir(join(base, name));
  return join(base, name);
}

function unpack(tar: Buffer, folder: string, limits: Partial<ImageLimits> = {}) {
  const all = { ...DEFAULT_IMAGE_LIMITS, minFreeBytes: 0, ...limits };
  return unpackLayer(Readable.from(chunksOf(tar)), folder, all, AbortSignal.timeout(100_000));
}

function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 64 * 1024) yield bytes.subarray(at, at + 64 * 1024);
}

function gunzip(bytes: Buffer): AsyncIterable<Buffer> {
  return Readable.from([bytes]).pipe(createGunzip());
}

/** A tar header that announces another size, with its checksum put right. */
function sized(header: Buffer, size: number): Buffer {
  const changed = Buffer.from(header);
  changed.write(size.toString(8).padStart(11, '0'), 124);
  changed.fill(' ', 148, 156);
  const sum = changed.reduce((total, byte) => total + byte, 0);
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return changed;
}

async function refuses(promise: Promise<unknown>, reason: RegExp): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(PlatformError.is(error, 'invalid_image'), String(error));
    assert.match(error.message, reason);
    return true;
  });
}
