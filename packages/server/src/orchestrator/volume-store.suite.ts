import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import { PlatformError, type ErrorCode } from '@svc/contract';
import type { VolumeStore } from './volume-store.ts';

const MIB = 1024 * 1024;
const CAPACITY_MIB = 16;

/** Tests every bullet of the port's comment. */
export function volumeStoreSuite(name: string, open: () => VolumeStore): void {
  describe(`the volume store ${name}`, () => {
    const made = async (t: TestContext) => {
      const store = open();
      const id = randomUUID();
      t.after(() => store.removeVolume(id));
      await store.createVolume(id, CAPACITY_MIB);
      return { store, id };
    };

    test('making a volume again gives it back, and with another capacity is refused', async (t) => {
      const { store, id } = await made(t);
      assert.partialDeepStrictEqual(await store.createVolume(id, CAPACITY_MIB), {
        id,
        capacityMib: CAPACITY_MIB,
      });
      await failsWith(store.createVolume(id, 32), 'name_already_exists');
      assert.equal((await store.listVolumes()).filter((volume) => volume.id === id).length, 1);
    });

    test('a volume that does not exist is not found, and removing it succeeds', async () => {
      const store = open();
      const id = randomUUID();
      await store.removeVolume(id);
      await failsWith(store.resizeVolume(id, 5), 'volume_not_found');
      await failsWith(store.volumeUsage(id), 'volume_not_found');
      await failsWith(store.listVolumeFiles(id, ''), 'volume_not_found');
      await failsWith(store.readVolumeFile(id, 'x'), 'volume_not_found');
      await failsWith(store.writeVolumeFile(id, 'x', content('x')), 'volume_not_found');
      await failsWith(store.removeVolumeFile(id, 'x', { recursive: true }), 'volume_not_found');
    });

    test('a volume grows and shrinks, but not below what is used, and usage follows', async (t) => {
      const { store, id } = await made(t);
      assert.ok((await store.volumeUsage(id)).usedBytes < 64 * 1024);
      await store.writeVolumeFile(id, 'big', content('x'.repeat(8 * MIB)));
      const { usedBytes, capacityBytes } = await store.volumeUsage(id);
      assert.ok(usedBytes >= 8 * MIB && usedBytes < 9 * MIB, `${usedBytes}`);
      assert.equal(capacityBytes, CAPACITY_MIB * MIB);
      assert.equal((await store.resizeVolume(id, 24)).capacityMib, 24);
      await failsWith(store.resizeVolume(id, 4), 'invalid_request');
      assert.equal((await store.resizeVolume(id, 12)).capacityMib, 12);
    });

    test('files are written with the folders that lead to them, read, listed and described', async (t) => {
      const { store, id } = await made(t);
      await store.writeVolumeFile(id, 'a/b/ünïcode', content('hello ', 'world'));
      assert.equal(await readText(store, id, 'a/b/ünïcode'), 'hello world');
      await store.writeVolumeFile(id, 'a/empty', content());
      assert.equal(await readText(store, id, 'a/empty'), '');
      await store.makeVolumeFolder(id, 'a/c/d');
      await store.makeVolumeFolder(id, 'a/c/d');
      assert.deepEqual(await names(store, id, 'a'), ['a/b', 'a/c', 'a/empty']);
      assert.deepEqual(await names(store, id, ''), ['a']);
      const { path, kind, size } = await store.statVolumeFile(id, 'a/b/ünïcode');
      assert.deepEqual([path, kind, size], ['a/b/ünïcode', 'file', 11]);
      assert.equal((await store.statVolumeFile(id, '')).kind, 'directory');
    });

    test('files and folders are copied, renamed and removed', async (t) => {
      const { store, id } = await made(t);
      await store.writeVolumeFile(id, 'a/b/c', content('c'));
      await store.copyVolumeFile(id, 'a', 'copy');
      await store.renameVolumeFile(id, 'copy/b', 'moved');
      assert.deepEqual(await names(store, id, ''), ['a', 'copy', 'moved']);
      assert.equal(await readText(store, id, 'moved/c'), 'c');
      await failsWith(store.removeVolumeFile(id, 'a', { recursive: false }), 'invalid_request');
      await store.removeVolumeFile(id, 'a', { recursive: true });
      await store.removeVolumeFile(id, 'copy', { recursive: false });
      assert.deepEqual(await names(store, id, ''), ['moved']);
      await failsWith(store.copyVolumeFile(id, 'moved', 'moved/inside'), 'invalid_volume_path');
    });

    test('a missing file is not found; a folder is no file and a file no folder', async (t) => {
      const { store, id } = await made(t);
      await store.writeVolumeFile(id, 'file', content('x'));
      await store.makeVolumeFolder(id, 'folder');
      await failsWith(store.readVolumeFile(id, 'none'), 'volume_file_not_found');
      await failsWith(store.listVolumeFiles(id, 'none'), 'volume_file_not_found');
      await failsWith(store.statVolumeFile(id, 'none/below'), 'volume_file_not_found');
      await failsWith(store.copyVolumeFile(id, 'none', 'x'), 'volume_file_not_found');
      await failsWith(store.renameVolumeFile(id, 'none', 'x'), 'volume_file_not_found');
      await failsWith(store.removeVolumeFile(id, 'none', { recursive: true }), 'volume_file_not_found');
      await failsWith(store.copyVolumeFile(id, 'file', 'none/x'), 'volume_file_not_found');
      await failsWith(store.readVolumeFile(id, 'folder'), 'invalid_volume_path');
      await failsWith(store.writeVolumeFile(id, 'folder', content('x')), 'invalid_volume_path');
      await failsWith(store.writeVolumeFile(id, 'file/below', content('x')), 'invalid_volume_path');
      await failsWith(store.listVolumeFiles(id, 'file'), 'invalid_volume_path');
      await failsWith(store.makeVolumeFolder(id, 'file'), 'invalid_volume_path');
      await failsWith(store.statVolumeFile(id, 'file/below'), 'invalid_volume_path');
    });

    test('paths that are absolute, climb or are malformed are refused', async (t) => {
      const { store, id } = await made(t);
      for (const path of ['/etc', '..', 'a/../b', './a', 'a//b', 'a/', 'nul\0', 'x'.repeat(256)]) {
        await failsWith(store.readVolumeFile(id, path), 'invalid_volume_path');
        await failsWith(store.writeVolumeFile(id, path, content('x')), 'invalid_volume_path');
        await failsWith(store.listVolumeFiles(id, path), 'invalid_volume_path');
        await failsWith(store.makeVolumeFolder(id, path), 'invalid_volume_path');
        await failsWith(store.copyVolumeFile(id, 'x', path), 'invalid_volume_path');
        await failsWith(store.renameVolumeFile(id, path, 'x'), 'invalid_volume_path');
        await failsWith(store.removeVolumeFile(id, path, { recursive: true }), 'invalid_volume_path');
      }
      await failsWith(store.removeVolumeFile(id, '', { recursive: true }), 'invalid_volume_path');
      assert.deepEqual(await names(store, id, ''), []);
    });

    test('a write that is interrupted or too large leaves the old file', async (t) => {
      const { store, id } = await made(t);
      await store.writeVolumeFile(id, 'file', content('old'));
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.from('half of the new');
        await Promise.resolve();
        throw new Error('the upload broke');
      }
      await assert.rejects(store.writeVolumeFile(id, 'file', failing()));
      await failsWith(store.writeVolumeFile(id, 'file', content('x'.repeat(20 * MIB))), 'disk_full');
      assert.equal(await readText(store, id, 'file'), 'old');
      assert.deepEqual(await names(store, id, ''), ['file']);
    });

    test('of several writers of one file one wins whole', async (t) => {
      const { store, id } = await made(t);
      const letters = ['a', 'b', 'c', 'd'];
      await Promise.all(
        letters.map((letter) => store.writeVolumeFile(id, 'file', content(letter.repeat(MIB)))),
      );
      const seen = await readText(store, id, 'file');
      assert.equal(seen.length, MIB);
      assert.equal(new Set(seen).size, 1);
    });
  });
}

async function failsWith(work: Promise<unknown>, code: ErrorCode): Promise<void> {
  await assert.rejects(work, (error) => PlatformError.is(error, code) || assert.fail(String(error)));
}

async function* content(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) {
    yield Buffer.from(text);
    await Promise.resolve();
  }
}

async function readText(store: VolumeStore, id: string, path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(await store.readVolumeFile(id, path))).toString();
}

async function names(store: VolumeStore, id: string, path: string): Promise<readonly string[]> {
  return (await store.listVolumeFiles(id, path)).map((entry) => entry.path);
}
