import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RestoreStage, requireRestored } from './restore-stage.ts';

const UNFINISHED = /a restore into .* was begun and has not ended\n {2}try: svc restore FILE/;

/** `words`: what to mount there, as `mount` reads it. */
async function folderFor(t: TestContext, ...words: readonly string[]): Promise<string> {
  const outer = await mkdtemp(join(tmpdir(), 'svc-stage-'));
  const folder = join(outer, 'a data folder');
  t.after(async () => {
    if (words.length > 0) execFileSync('umount', [folder]);
    await rm(outer, { recursive: true, force: true });
  });
  await mkdir(folder);
  if (words.length > 0) execFileSync('mount', [...words, folder]);
  return folder;
}

async function fill(stage: RestoreStage, names: readonly string[]): Promise<void> {
  for (const name of names) {
    await mkdir(join(stage.folder, name));
    await writeFile(join(stage.folder, name, 'content'), name);
  }
}

/** The state after a killed restore: some names were moved into place, others were not. */
async function stopMidway(folder: string): Promise<void> {
  const stage = await RestoreStage.prepare(folder);
  await fill(stage, ['images', 'rootfs', 'server']);
  await mkdir(join(folder, 'rootfs/in the way'), { recursive: true });
  await assert.rejects(stage.takePlace(), /ENOTEMPTY/);
  await rm(join(folder, 'rootfs'), { recursive: true });
  assert.deepEqual((await readdir(folder)).toSorted(), ['images', 'restore.unfinished']);
}

test('restored data takes its place in one step, also behind a link, and leaves no stage', async (t) => {
  const folder = await folderFor(t);
  const link = `${folder}.link`;
  await symlink(folder, link);
  const stage = await RestoreStage.prepare(link);
  await fill(stage, ['server']);
  await assert.rejects(requireRestored(link), UNFINISHED);
  assert.deepEqual(await readdir(folder), []);
  await stage.takePlace();
  await requireRestored(folder);
  assert.equal(await readFile(join(link, 'server/content'), 'utf8'), 'server');
  assert.deepEqual((await readdir(dirname(folder))).toSorted(), ['a data folder', 'a data folder.link']);
});

test('on a mount point the names take their places, on one of the same file system too', async (t) => {
  const source = await folderFor(t);
  for (const words of [
    ['-t', 'tmpfs', 'tmpfs'],
    ['--bind', source],
  ]) {
    const folder = await folderFor(t, ...words);
    await mkdir(join(folder, 'lost+found'));
    const stage = await RestoreStage.prepare(folder);
    await fill(stage, ['server', 'images']);
    await stage.takePlace();
    await requireRestored(folder);
    assert.deepEqual((await readdir(folder)).toSorted(), ['images', 'lost+found', 'server']);
  }
});

test('a restore that was killed half-way starts again from the beginning, and no server starts before', async (t) => {
  const folder = await folderFor(t, '-t', 'tmpfs', 'tmpfs');
  await stopMidway(folder);
  await assert.rejects(requireRestored(folder), UNFINISHED);
  const again = await RestoreStage.prepare(folder);
  assert.deepEqual(await readdir(folder), ['restore.unfinished']);
  await fill(again, ['server']);
  await again.takePlace();
  await requireRestored(folder);
  assert.deepEqual(await readdir(folder), ['server']);
});

test('a restore that fails while names take their places leaves nothing', async (t) => {
  const folder = await folderFor(t, '-t', 'tmpfs', 'tmpfs');
  const stage = await RestoreStage.prepare(folder);
  await fill(stage, ['images', 'rootfs']);
  await mkdir(join(folder, 'rootfs/in the way'), { recursive: true });
  await assert.rejects(stage.takePlace(), /ENOTEMPTY/);
  await stage.discard();
  assert.deepEqual(await readdir(folder), []);
});

test('files from elsewhere stay in the data folder and prevent the next restore', async (t) => {
  const folder = await folderFor(t, '-t', 'tmpfs', 'tmpfs');
  await stopMidway(folder);
  await writeFile(join(folder, 'mine'), 'kept');
  await assert.rejects(RestoreStage.prepare(folder), /is not empty \(mine\).*\n {2}try: move what is in/);
  assert.deepEqual(await readdir(folder), ['mine']);
});

test('a list of names with a path removes nothing outside of the data folder', async (t) => {
  const folder = await folderFor(t, '-t', 'tmpfs', 'tmpfs');
  await stopMidway(folder);
  const outside = join(dirname(folder), 'outside');
  await writeFile(outside, 'kept');
  const names = ['images', 'images/../../outside', '../outside', '..'];
  await writeFile(join(folder, 'restore.unfinished/names.json'), JSON.stringify(names));
  await RestoreStage.prepare(folder);
  assert.deepEqual(await readdir(folder), ['restore.unfinished']);
  assert.equal(await readFile(outside, 'utf8'), 'kept');
});
