import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import type { ErrorCode } from '@svc/contract/errors';
import type { VolumeFiles, Volumes } from './volumes.ts';

/** A host on which engines run one after the other. */
export interface VolumesSuiteHost extends AsyncDisposable {
  /** A file of the host outside of all volumes, with the content "secret". */
  readonly secret: string;
  /** The volumes of a new engine; `recover` was not called. */
  open(): Volumes;
}

const MIB = 1024 * 1024;
export const soon = (): AbortSignal => AbortSignal.timeout(100_000);

export async function* content(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

/** `bytes` of one letter, in chunks of 64 KiB. */
export async function* filled(letter: string, bytes: number): AsyncGenerator<Uint8Array> {
  for (let left = bytes; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536), letter);
}

export async function readText(files: VolumeFiles, path: string): Promise<string> {
  return Buffer.concat(await Array.fromAsync(await files.read(path, soon()))).toString();
}

export async function rejectsWith(
  promise: Promise<unknown>,
  code: ErrorCode,
  message?: string,
): Promise<void> {
  await assert.rejects(
    promise,
    (error) => {
      assert.ok(PlatformError.is(error), String(error));
      assert.equal(error.code, code, error.message);
      return true;
    },
    message,
  );
}

async function names(files: VolumeFiles, path = ''): Promise<readonly string[]> {
  return (await files.list(path, soon())).map((entry) => entry.path);
}

/** The contract of the port. */
export function volumesSuite(name: string, makeHost: () => Promise<VolumesSuiteHost>): void {
  const withVolume = (
    title: string,
    body: (volumes: Volumes, host: VolumesSuiteHost) => Promise<void>,
  ): void => {
    test(`${name}: ${title}`, async () => {
      await using host = await makeHost();
      const volumes = host.open();
      await volumes.recover(new Map());
      await volumes.create('vol', 32, soon());
      try {
        await body(volumes, host);
      } finally {
        await volumes.close();
      }
    });
  };

  withVolume('creating a volume again returns it; with another capacity its id is taken', async (volumes) => {
    const first = await volumes.get('vol');
    assert.equal(first?.capacityMib, 32);
    assert.deepEqual(await volumes.create('vol', 32, soon()), first);
    await rejectsWith(volumes.create('vol', 33, soon()), 'name_already_exists');
    await Promise.all([volumes.create('two', 16, soon()), volumes.create('two', 16, soon())]);
    assert.deepEqual((await volumes.list()).map((volume) => volume.id).sort(), ['two', 'vol']);
  });

  withVolume('ids are any text, and never file names', async (volumes) => {
    for (const id of ['../../etc', 'a/b', '.', 'x'.repeat(300), 'ümläut 💾']) {
      await volumes.create(id, 8, soon());
      await volumes.files(id).write('who', content(id), soon());
      assert.equal(await readText(volumes.files(id), 'who'), id);
    }
    assert.equal((await volumes.list()).length, 6);
  });

  withVolume('a capacity that is no whole number of MiB is refused', async (volumes) => {
    for (const capacity of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await rejectsWith(volumes.create('odd', capacity, soon()), 'invalid_request');
      await rejectsWith(volumes.resize('vol', capacity, soon()), 'invalid_request');
    }
  });

  withVolume('a volume that does not exist is not found, and removing it succeeds', async (volumes) => {
    assert.equal(await volumes.get('none'), undefined);
    await volumes.remove('none');
    await rejectsWith(volumes.usage('none'), 'volume_not_found');
    await rejectsWith(volumes.resize('none', 5, soon()), 'volume_not_found');
    await rejectsWith(volumes.attach('none', 'sandbox', soon()), 'volume_not_found');
    await volumes.detach('none', 'sandbox');
    await rejectsWith(volumes.files('none').list('', soon()), 'volume_not_found');
  });

  withVolume('data survives the engine', async (volumes, host) => {
    await volumes.files('vol').write('deep/file', content('kept'), soon());
    await volumes.close();
    const next = host.open();
    await next.recover(new Map());
    await next.recover(new Map());
    assert.equal(await readText(next.files('vol'), 'deep/file'), 'kept');
    assert.deepEqual(await next.list(), await volumes.list());
    await next.close();
  });

  withVolume('files are written, read, listed, described, copied, renamed and removed', async (volumes) => {
    const files = volumes.files('vol');
    await files.write('a/b/c.txt', content('hello ', 'world'), soon());
    assert.equal(await readText(files, 'a/b/c.txt'), 'hello world');
    await files.write('a/b/c.txt', content(), soon());
    assert.equal(await readText(files, 'a/b/c.txt'), '');
    await files.write('a/b/c.txt', filled('x', 3 * MIB), soon());
    assert.equal((await readText(files, 'a/b/c.txt')).length, 3 * MIB);
    await files.mkdir('a/empty/below', soon());
    await files.mkdir('a/empty/below', soon());
    assert.deepEqual(await names(files, 'a'), ['a/b', 'a/empty']);
    const entry = await files.stat('a/b/c.txt', soon());
    assert.deepEqual([entry.path, entry.kind, entry.size, entry.mode], ['a/b/c.txt', 'file', 3 * MIB, 0o644]);
    assert.ok(Math.abs(Date.parse(entry.modifiedAt ?? '') - Date.now()) < 60_000);
    assert.equal((await files.stat('', soon())).kind, 'directory');
    await files.copy('a/b/c.txt', 'copy', soon());
    await files.copy('a', 'tree', soon());
    assert.deepEqual(await names(files, 'tree/b'), ['tree/b/c.txt']);
    await files.rename('tree/b', 'moved', soon());
    assert.deepEqual(await names(files), ['a', 'copy', 'moved', 'tree']);
    await rejectsWith(files.remove('a', { recursive: false }, soon()), 'invalid_request');
    await files.remove('a', { recursive: true }, soon());
    await files.remove('tree/empty/below', { recursive: false }, soon());
    await files.remove('copy', { recursive: false }, soon());
    assert.deepEqual(await names(files), ['moved', 'tree']);
    assert.equal((await readText(files, 'moved/c.txt')).length, 3 * MIB);
  });

  withVolume(
    'paths that are absolute, climb, or are malformed are refused by every operation',
    async (volumes) => {
      const files = volumes.files('vol');
      const bad = [
        '/etc/passwd',
        '..',
        'a/../b',
        './a',
        'a//b',
        'a/',
        'nul\0',
        'x'.repeat(256),
        'a/'.repeat(3000) + 'b',
      ];
      for (const path of bad) {
        const calls = [
          files.read(path, soon()),
          files.write(path, content('x'), soon()),
          files.list(path, soon()),
          files.stat(path, soon()),
          files.mkdir(path, soon()),
          files.copy(path, 'ok', soon()),
          files.copy('ok', path, soon()),
          files.rename(path, 'ok', soon()),
          files.rename('ok', path, soon()),
          files.remove(path, { recursive: true }, soon()),
        ];
        for (const call of await Promise.allSettled(calls)) {
          assert.ok(call.status === 'rejected' && PlatformError.is(call.reason, 'invalid_volume_path'), path);
        }
      }
      await rejectsWith(files.remove('', { recursive: true }, soon()), 'invalid_volume_path');
      await rejectsWith(files.write('', content('x'), soon()), 'invalid_volume_path');
    },
  );

  withVolume('a missing file is not found; a folder is no file and a file no folder', async (volumes) => {
    const files = volumes.files('vol');
    await files.write('file', content('x'), soon());
    await files.mkdir('folder', soon());
    await rejectsWith(files.read('none', soon()), 'volume_file_not_found');
    await rejectsWith(files.list('none', soon()), 'volume_file_not_found');
    await rejectsWith(files.stat('none/below', soon()), 'volume_file_not_found');
    await rejectsWith(files.copy('none', 'x', soon()), 'volume_file_not_found');
    await rejectsWith(files.rename('none', 'x', soon()), 'volume_file_not_found');
    await rejectsWith(files.remove('none', { recursive: true }, soon()), 'volume_file_not_found');
    await rejectsWith(files.read('folder', soon()), 'invalid_volume_path');
    await rejectsWith(files.write('folder', content('x'), soon()), 'invalid_volume_path');
    await rejectsWith(files.list('file', soon()), 'invalid_volume_path');
    await rejectsWith(files.mkdir('file', soon()), 'invalid_volume_path');
    await rejectsWith(files.copy('folder', 'folder/inside', soon()), 'invalid_volume_path');
  });

  withVolume('a write that is interrupted leaves the old file and nothing else', async (volumes) => {
    const files = volumes.files('vol');
    await files.write('file', content('old'), soon());
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(100_000);
      throw new Error('the upload broke');
    }
    await assert.rejects(files.write('file', failing(), soon()), /the upload broke/);
    const controller = new AbortController();
    async function* aborting(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(100_000);
      controller.abort(new Error('the caller left'));
      yield Buffer.alloc(100_000);
    }
    await assert.rejects(files.write('file', aborting(), controller.signal), /the caller left/);
    assert.equal(await readText(files, 'file'), 'old');
    assert.deepEqual(await names(files), ['file']);
  });

  withVolume(
    'a write beyond the capacity is disk_full, leaves the old file, and smaller ones still work',
    async (volumes) => {
      const files = volumes.files('vol');
      await files.write('file', content('old'), soon());
      await rejectsWith(files.write('file', filled('x', 40 * MIB), soon()), 'disk_full');
      assert.equal(await readText(files, 'file'), 'old');
      await files.write('file', filled('y', 20 * MIB), soon());
      await rejectsWith(files.copy('file', 'second', soon()), 'disk_full');
      assert.deepEqual(await names(files), ['file']);
    },
  );

  withVolume('usage starts near zero and follows what is stored', async (volumes) => {
    const before = await volumes.usage('vol');
    assert.equal(before.capacityBytes, 32 * MIB);
    assert.ok(before.usedBytes < 64 * 1024, `${before.usedBytes}`);
    await volumes.files('vol').write('file', filled('x', 8 * MIB), soon());
    const after = await volumes.usage('vol');
    assert.ok(after.usedBytes >= 8 * MIB && after.usedBytes < 9 * MIB, `${after.usedBytes}`);
    await volumes.files('vol').remove('file', { recursive: false }, soon());
    assert.ok((await volumes.usage('vol')).usedBytes < MIB);
  });

  withVolume('a volume grows, and shrinks to no less than what is used', async (volumes) => {
    const files = volumes.files('vol');
    await files.write('file', filled('x', 20 * MIB), soon());
    assert.equal((await volumes.resize('vol', 64, soon())).capacityMib, 64);
    await files.write('second', filled('y', 35 * MIB), soon());
    await rejectsWith(volumes.resize('vol', 16, soon()), 'invalid_request');
    await files.remove('second', { recursive: false }, soon());
    assert.equal((await volumes.resize('vol', 48, soon())).capacityMib, 48);
    await rejectsWith(files.write('second', filled('y', 35 * MIB), soon()), 'disk_full');
    assert.equal(await readText(files, 'file'), 'x'.repeat(20 * MIB));
    assert.equal((await volumes.get('vol'))?.capacityMib, 48);
  });

  withVolume(
    'a volume in use cannot be removed; attaching and detaching can be repeated',
    async (volumes) => {
      const root = await volumes.attach('vol', 'one', soon());
      assert.equal(await volumes.attach('vol', 'one', soon()), root);
      assert.equal(await volumes.attach('vol', 'two', soon()), root);
      await volumes.detach('vol', 'one');
      await volumes.detach('vol', 'one');
      await rejectsWith(volumes.remove('vol'), 'volume_in_use');
      await volumes.detach('vol', 'two');
      await volumes.remove('vol');
      await volumes.remove('vol');
      assert.equal(await volumes.get('vol'), undefined);
      await volumes.create('vol', 16, soon());
      assert.deepEqual(await names(volumes.files('vol')), []);
    },
  );

  withVolume('after a restart the holders it is told of hold their volumes', async (volumes, host) => {
    const root = await volumes.attach('vol', 'one', soon());
    await volumes.files('vol').write('file', content('kept'), soon());
    const next = host.open();
    await next.recover(new Map([['vol', ['one']]]));
    await next.recover(new Map([['vol', ['one']]]));
    await rejectsWith(next.remove('vol'), 'volume_in_use');
    assert.equal(await next.attach('vol', 'one', soon()), root);
    assert.equal(await readText(next.files('vol'), 'file'), 'kept');
    await next.detach('vol', 'one');
    await next.remove('vol');
    await next.close();
  });

  withVolume('a link of a sandbox leads nowhere outside', async (volumes, host) => {
    const files = volumes.files('vol');
    const root = await volumes.attach('vol', 'sandbox', soon());
    await files.write('inside', content('inside'), soon());
    await symlink(host.secret, join(root, 'absolute'));
    await symlink(`../../../../../../../..${host.secret}`, join(root, 'climbing'));
    await symlink(join(host.secret, '..'), join(root, 'folder'));
    await symlink('inside', join(root, 'harmless'));
    for (const path of ['absolute', 'climbing', 'folder/secret']) {
      await rejectsWith(files.read(path, soon()), 'volume_file_not_found');
    }
    assert.equal(await readText(files, 'harmless'), 'inside');
    assert.equal((await files.stat('absolute', soon())).kind, 'symlink');
    await files.copy('absolute', 'copied', soon());
    await rejectsWith(files.read('copied', soon()), 'volume_file_not_found');
    await files.write('absolute', content('mine'), soon());
    assert.equal(await readText(files, 'absolute'), 'mine');
    await volumes.detach('vol', 'sandbox');
  });

  withVolume('of several writers of one file one wins, and readers never see a mixture', async (volumes) => {
    const files = volumes.files('vol');
    const letters = ['a', 'b', 'c', 'd', 'e', 'f'];
    await files.write('file', filled('a', MIB), soon());
    const writing = Promise.all(letters.map((letter) => files.write('file', filled(letter, MIB), soon())));
    for (let reading = 0; reading < 10; reading++) {
      const seen = await readText(files, 'file');
      assert.equal(seen.length, MIB);
      assert.equal(new Set(seen).size, 1);
    }
    await writing;
    assert.deepEqual(await names(files), ['file']);
  });

  withVolume('many files are written and read at the same time', async (volumes) => {
    const files = volumes.files('vol');
    const paths = Array.from({ length: 100 }, (_, index) => `d${index % 7}/f${index}`);
    await Promise.all(paths.map((path) => files.write(path, content(path), soon())));
    assert.deepEqual(await Promise.all(paths.map((path) => readText(files, path))), paths);
  });
}
