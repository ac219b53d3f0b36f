import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  mkdir,
  mkdtemp,
  open as openFile,
  readdir,
  readFile,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { Snapshots, type SnapshotSource } from './snapshots.ts';

const soon = () => AbortSignal.timeout(100_000);
const CONTENT = 'the disk';
/** Inside of blocks that are hashed, across two of them, and beyond the last whole one. */
const PLACES = [0, 65_532, 700_000, 2 ** 20 - 3];

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-snapshots-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'snapshots');
}

async function open(folder: string): Promise<Snapshots> {
  const snapshots = new Snapshots(folder, pino({ level: 'silent' }));
  await snapshots.recover();
  return snapshots;
}

function source(saveDisk: SnapshotSource['saveDisk'] = (file) => writeFile(file, CONTENT)): SnapshotSource {
  return { sandboxId: 'box', image: { reference: 'svc/x', id: 'sha256:1' }, diskSizeMib: 16, saveDisk };
}

/** As the documents say, in the plainest way. */
function digestOf(content: Buffer): string {
  const digests: Buffer[] = [];
  for (let at = 0; at < content.length; at += 65_536) {
    digests.push(
      createHash('sha256')
        .update(content.subarray(at, at + 65_536))
        .digest(),
    );
  }
  return `sha256:${createHash('sha256').update(Buffer.concat(digests)).digest('hex')}`;
}

test('a snapshot says what its file is, and is there after a restart', async (t) => {
  const folder = await makeFolder(t);
  const snapshots = await open(folder);
  const sparse = source(async (file) => {
    await using handle = await openFile(file, 'w');
    for (const at of PLACES) await handle.write(CONTENT, at);
    await handle.truncate(2 ** 20 + 5);
  });
  const made = await snapshots.create('org/one', sparse, soon());
  const content = Buffer.alloc(2 ** 20 + 5);
  for (const at of PLACES) content.write(CONTENT, at);
  assert.equal(made.digest, digestOf(content));
  assert.equal(made.sizeBytes, 2 ** 20 + 5);
  assert.ok(made.storedBytes < made.sizeBytes);
  for (let round = 0; round < 2; round++) {
    const after = await open(folder);
    assert.deepEqual(after.list(), [made]);
    assert.deepEqual(after.get('org/one'), made);
    assert.ok(after.isImageInUse('sha256:1') && !after.isImageInUse('sha256:2'));
  }
});

test('a second snapshot with the same id is refused, also during the first, and the image counts as in use at once', async (t) => {
  const snapshots = await open(await makeFolder(t));
  const gate = Promise.withResolvers<void>();
  const slow = source(async (file) => {
    await gate.promise;
    await writeFile(file, CONTENT);
  });
  const making = snapshots.create('one', slow, soon());
  assert.ok(snapshots.isImageInUse('sha256:1'));
  assert.deepEqual(snapshots.list(), []);
  await assert.rejects(snapshots.create('one', source(), soon()), { code: 'name_already_exists' });
  gate.resolve();
  await making;
  await assert.rejects(snapshots.create('one', source(), soon()), { code: 'name_already_exists' });
  await snapshots.remove('one');
  await snapshots.remove('one');
  assert.ok(!snapshots.isImageInUse('sha256:1'));
  await snapshots.create('one', source(), soon());
});

test('a snapshot whose copy fails, or whose caller leaves while it is hashed, leaves nothing', async (t) => {
  const folder = await makeFolder(t);
  const snapshots = await open(folder);
  const failing = source(async (file) => {
    await writeFile(file, 'half');
    throw new Error('no more room');
  });
  await assert.rejects(snapshots.create('one', failing, soon()), /no more room/);
  const abort = new AbortController();
  const abandoned = source(async (file) => {
    await writeFile(file, CONTENT);
    // Takes seconds to hash, holes or not.
    await truncate(file, 2 ** 43);
    setTimeout(() => abort.abort(new Error('changed my mind')), 100);
  });
  await assert.rejects(snapshots.create('one', abandoned, abort.signal), /changed my mind/);
  assert.deepEqual(await readdir(folder), []);
  assert.throws(() => snapshots.get('one'), { code: 'snapshot_not_found' });
});

test('a removal waits for copies that have begun, and no other can begin', async (t) => {
  const folder = await makeFolder(t);
  const snapshots = await open(folder);
  await snapshots.create('one', source(), soon());
  const gate = Promise.withResolvers<void>();
  const reading = snapshots.read('one', async (disk) => {
    await gate.promise;
    assert.equal(await readFile(disk, 'utf8'), CONTENT);
  });
  const removing = snapshots.remove('one').then(() => 'removed');
  assert.equal(await Promise.race([removing, delay(200, 'waiting')]), 'waiting');
  assert.deepEqual(snapshots.list(), []);
  // Another server removes the same snapshot: its call resolves when the snapshot is gone.
  const again = snapshots.remove('one').then(() => 'removed');
  assert.equal(await Promise.race([again, delay(200, 'waiting')]), 'waiting');
  gate.resolve();
  await reading;
  await Promise.all([removing, again]);
  assert.deepEqual(await readdir(folder), []);
  await assert.rejects(
    snapshots.read('one', async () => {}),
    { code: 'snapshot_not_found' },
  );
});

test('recovery removes what is half made or half removed, and leaves alone what it cannot read', async (t) => {
  const folder = await makeFolder(t);
  const made = await (await open(folder)).create('one', source(), soon());
  for (const [name, record] of [
    ['half', null],
    ['damaged', '{"id":'],
  ] as const) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, 'disk.img'), CONTENT);
    if (record !== null) await writeFile(join(folder, name, 'snapshot.json'), record);
  }
  for (let round = 0; round < 2; round++) {
    assert.deepEqual((await open(folder)).list(), [made]);
    const names = await readdir(folder);
    assert.ok(!names.includes('half') && names.includes('damaged') && names.length === 2, names.join(' '));
  }
});
