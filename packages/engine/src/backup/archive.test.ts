import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { tarOf } from '../testing/test-layers.ts';
import { FORMAT, FRAME_HEADER_BYTES, MAGIC, type Piece } from './archive-format.ts';
import { layerTar } from './layer-tar.ts';
import { restoreData } from './restore-data.ts';
import { writeArchive } from './write-archive.ts';

const HANDLE = '0123456789abcdef';
const LAYER = `images/layers/${'a'.repeat(64)}/fs`;
const HEAD = { version: '0.1.0', createdAt: '2026-01-01T00:00:00.000Z', hasStore: true, hasDisks: true };

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-backup-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function piece(
  path: string,
  content: string,
  { offset = 0, size }: { readonly offset?: number; readonly size?: number } = {},
): Piece {
  return {
    path,
    sizeBytes: size ?? offset + content.length,
    data: items([{ offset, bytes: Buffer.from(content) }]),
  };
}

async function* items<Item>(all: readonly Item[]): AsyncGenerator<Item> {
  for (const item of all) yield await Promise.resolve(item);
}

async function archiveOf(...pieces: readonly Piece[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await writeArchive(HEAD, items(pieces), async (chunk) => void (await Promise.resolve(chunks.push(chunk))));
  return Buffer.concat(chunks);
}

async function restore(archive: Buffer, folder: string) {
  let place = 0;
  const source = async (into: Buffer) => {
    const length = archive.copy(into, 0, place);
    place += length;
    return await Promise.resolve(length);
  };
  const signal = AbortSignal.timeout(60_000);
  return await restoreData(source, {
    folder,
    serverFiles: ['server/store.db'],
    onPiece: () => undefined,
    signal,
  });
}

const isRefused = (error: unknown) =>
  PlatformError.is(error, 'invalid_request') &&
  /cannot be restored.*Nothing was changed$/.test(error.message);

test('a backup is restored with holes, readable by its owner only', async (t) => {
  const folder = await folderOf(t);
  const disk = piece(`rootfs/disks/${HANDLE}.img`, 'end of it', { offset: 40 * 2 ** 20 });
  const head = await restore(await archiveOf(piece('server/store.db', 'rows'), disk), folder);
  assert.deepEqual(head, { format: FORMAT, ...HEAD });
  assert.equal(await readFile(join(folder, 'server/store.db'), 'utf8'), 'rows');
  const { size, blocks, mode } = await stat(join(folder, disk.path));
  assert.equal(size, 40 * 2 ** 20 + 9);
  assert.ok(blocks * 512 < 2 ** 20, `it takes ${blocks * 512} bytes`);
  assert.equal(mode & 0o777, 0o600);
  assert.equal((await stat(join(folder, 'server'))).mode & 0o777, 0o700);
});

test('an archive with any byte changed, cut off anywhere, or with more behind it is refused', async (t) => {
  const folder = await folderOf(t);
  const archive = await archiveOf(piece('server/store.db', 'rows'), piece('authority.pem', 'key'));
  const attempt = async (bytes: Buffer, what: string) => {
    const target = join(folder, what);
    await mkdir(target);
    await assert.rejects(restore(bytes, target), isRefused, what);
  };
  for (let place = 0; place < archive.length; place++) {
    const changed = Buffer.from(archive);
    changed.writeUInt8(changed.readUInt8(place) ^ 0x10, place);
    // The fields of the head are informative only.
    const isHead =
      place >= MAGIC.length &&
      place < MAGIC.length + FRAME_HEADER_BYTES + JSON.stringify({ format: 1, ...HEAD }).length;
    if (!isHead) await attempt(changed, `changed ${place}`);
    if (place % 7 === 0) await attempt(archive.subarray(0, place), `cut ${place}`);
  }
  await attempt(Buffer.concat([archive, Buffer.of(0)]), 'longer');
});

test('a newer format is named, with what to do', async (t) => {
  const archive = await archiveOf(piece('authority.pem', 'key'));
  const newer = Buffer.from(archive.toString('latin1').replace('"format":1', '"format":7'), 'latin1');
  await assert.rejects(
    restore(newer, await folderOf(t)),
    /it is of format 7, made by a newer svc; use that one/,
  );
});

test('restore writes only files of svc, each once, also from a forged archive', async (t) => {
  const folder = await folderOf(t);
  const inner = join(folder, 'target');
  await mkdir(inner);
  const names = [
    '../outside',
    '/etc/outside',
    'server/../../outside',
    'server/other',
    `volumes/volume-${'0'.repeat(24)}/writing/..`,
    `sandboxes/${HANDLE}/../../outside`,
    `rootfs/disks/${HANDLE}.img/x`,
    'engine.sock',
    '',
  ];
  for (const name of names)
    await assert.rejects(restore(await archiveOf(piece(name, 'x')), inner), isRefused, name);
  const twice = await archiveOf(piece('authority.pem', 'a'), piece('authority.pem', 'b'));
  await assert.rejects(restore(twice, inner), isRefused);
  const huge = piece('server/store.db', 'x', { size: 2 ** 52 });
  await assert.rejects(restore(await archiveOf(huge), inner), isRefused);
  assert.deepEqual(await readdir(folder), ['target']);
});

test('a layer in an archive is unpacked with no more trust than one of a registry', async (t) => {
  const folder = await folderOf(t);
  const inner = join(folder, 'target');
  for (const entries of [
    [{ name: '../outside', content: 'x' }],
    [
      { name: 'a', type: 'symlink', linkname: '../../../../..' } as const,
      { name: 'a/outside', content: 'x' },
    ],
  ]) {
    await mkdir(inner);
    const tar = await tarOf(entries);
    const layer = { path: LAYER, sizeBytes: null, data: items([{ offset: 0, bytes: tar }]) };
    await assert.rejects(restore(await archiveOf(layer), inner), isRefused);
    assert.deepEqual(await readdir(folder), ['target']);
    await rm(inner, { recursive: true });
  }
});

test('a layer comes back as it was: owners, modes, links, attributes, and what it hides', async (t) => {
  const folder = await folderOf(t);
  const layer = join(folder, 'layer');
  await mkdir(join(layer, 'opaque'), { recursive: true });
  await writeFile(join(layer, 'opaque/file'), 'x'.repeat(3_000_000));
  await link(join(layer, 'opaque/file'), join(layer, 'second-name'));
  await symlink('/nowhere', join(layer, 'way'));
  await writeFile(join(layer, `${'long-'.repeat(40)}name`), 'é');
  const shell = [
    'chown 7:8 opaque/file; chmod 4751 opaque/file; chmod 000 long-*; mknod -m 000 hidden c 0 0',
    `touch -h -d @1000000000 way opaque .`,
  ].join('; ');
  execFileSync('sh', ['-ec', shell], { cwd: layer });
  execFileSync(
    'python3',
    [
      '-c',
      'import os; os.setxattr("opaque", "trusted.overlay.opaque", b"y"); os.setxattr("opaque/file", "user.note", b"kept")',
    ],
    { cwd: layer },
  );
  const bytes = (await Array.fromAsync(layerTar(layer))).filter(({ length }) => length > 0);
  let place = 0;
  const data = bytes.map((chunk) => ({ offset: (place += chunk.length) - chunk.length, bytes: chunk }));
  await restore(await archiveOf({ path: LAYER, sizeBytes: null, data: items(data) }), folder);
  assert.equal(describe(join(folder, LAYER)), describe(layer));
});

/** Everything that a sandbox could see of a layer. */
function describe(folder: string): string {
  const program = `
import os, stat
for root, folders, files in sorted(os.walk('.')):
    for name in sorted(folders + files):
        path = os.path.join(root, name); s = os.lstat(path)
        what = os.readlink(path) if stat.S_ISLNK(s.st_mode) else open(path).read() if stat.S_ISREG(s.st_mode) else s.st_rdev
        attributes = {key: os.getxattr(path, key, follow_symlinks=False) for key in os.listxattr(path, follow_symlinks=False)}
        print(path, oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, hash(what) if isinstance(what, str) else what, attributes)`;
  return execFileSync('python3', ['-c', program], {
    cwd: folder,
    encoding: 'utf8',
    env: { PYTHONHASHSEED: '0', PATH: '/usr/bin:/bin' },
  });
}
