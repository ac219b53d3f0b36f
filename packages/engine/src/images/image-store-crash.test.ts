import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { folderSource, newTestStore, resolveOptions, type TestStore } from '../testing/test-store.ts';

const FILES = 300;

type Leftovers = Awaited<ReturnType<TestStore['leftovers']>>;

/** The steps of an import as they show on the disk. */
const MOMENTS: Readonly<Record<string, (found: Leftovers, folder: string) => boolean | Promise<boolean>>> = {
  'before anything is unpacked': ({ staging }) => staging.length > 0,
  'while files are unpacked': async ({ staging }, folder) => {
    const root = join(folder, 'staging', staging[0] ?? '', 'layer', 'fs');
    return (await readdir(root).catch(() => [])).length > 10;
  },
  'when the layer is in place': ({ layers }) => layers.length > 0,
  'when the record is written': ({ records }) => records.length > 0,
  'after all was done': () => false,
};

suite('an image store that is killed', () => {
  for (const [moment, isReached] of Object.entries(MOMENTS)) {
    test(`${moment} leaves a whole image or none after recover`, async (t) => {
      // On a busy machine the import may be done before it is killed.
      for (let attempt = 1; attempt <= 10; attempt++) {
        const count = await imagesAfterKill(t, isReached);
        if (moment !== 'before anything is unpacked' || count === 0) return;
      }
      assert.fail('it was never killed in time');
    });
  }

  test('forgets records and layers that were damaged, and pulls or imports them anew', async (t) => {
    const { folder, scratch, store, reopen, leftovers } = await newTestStore(t);
    await store.import(await folderSource(scratch, 'one'), 'svc/one', resolveOptions());
    await store.import(await folderSource(scratch, 'two'), 'svc/two', resolveOptions());
    const [record = ''] = (await leftovers()).records;
    await writeFile(join(folder, 'records', record), '{"torn');
    await writeFile(join(folder, 'records', `${record}.new`), '{}');
    await mkdir(join(folder, 'layers', 'half-made'));
    await mkdir(join(folder, 'staging', 'left-behind'));
    const second = reopen();
    await second.recover();
    assert.equal((await second.list()).length, 1);
    assert.deepEqual(
      Object.values(await leftovers()).map(({ length }) => length),
      [0, 1, 1],
    );
    const [layer = ''] = (await leftovers()).layers;
    await rm(join(folder, 'layers', layer), { recursive: true });
    const third = reopen();
    await third.recover();
    assert.deepEqual(await third.list(), []);
    assert.equal(
      (await third.import(await folderSource(scratch, 'one'), 'svc/one', resolveOptions())).layers.length,
      1,
    );
  });
});

/** Kills an import at a moment and checks what the next store finds; returns its number of images. */
async function imagesAfterKill(
  t: TestContext,
  isReached: (found: Leftovers, folder: string) => boolean | Promise<boolean>,
): Promise<number> {
  const { folder, scratch, reopen, leftovers } = await newTestStore(t);
  const source = await folderSource(scratch, 'content');
  for (let index = 0; index < FILES; index++) await writeFile(join(source.path, `${index}`), `${index}`);
  const isReported = await importUntil(folder, source.path, async () => isReached(await leftovers(), folder));
  const store = reopen();
  await store.recover();
  const images = await store.list();
  const { staging, layers, records } = await leftovers();
  assert.deepEqual(staging, []);
  assert.equal(layers.length, images.length);
  assert.equal(records.length, images.length);
  for (const { layers: folders } of images) assert.equal((await readdir(folders[0] ?? '')).length, FILES + 1);
  if (isReported) assert.equal(images.length, 1, 'what was reported done is there');
  return images.length;
}

/** Imports in a separate process, which is killed when the condition holds; true when it was killed before it finished. */
async function importUntil(
  folder: string,
  path: string,
  isReached: () => Promise<boolean>,
): Promise<boolean> {
  const program = new URL('../testing/test-import-process.ts', import.meta.url);
  const child = fork(program, [folder, path], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  await once(child, 'message');
  const done = new AbortController();
  child.once('message', () => done.abort());
  child.send('start');
  try {
    const deadline = AbortSignal.timeout(100_000);
    while (!done.signal.aborted && !(await isReached())) {
      deadline.throwIfAborted();
      await setImmediate();
    }
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
  return done.signal.aborted;
}
