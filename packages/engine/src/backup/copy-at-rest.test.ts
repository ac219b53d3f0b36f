import assert from 'node:assert/strict';
import { mkdir, readdir, truncate, watch, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { LiveDisks } from '../rootfs/live-disk.ts';
import { makeTestHost } from '../testing/test-host.ts';
import { copyAtRest } from './copy-at-rest.ts';

test('a copy of a mounted disk waits until another process has thawed it', async () => {
  await using host = await makeTestHost();
  const [image, mountPoint, stage, marks] = [
    join(host.folder, 'image'),
    join(host.folder, 'mounted'),
    join(host.folder, 'stage'),
    join(host.folder, 'frozen'),
  ];
  await writeFile(image, '');
  await truncate(image, 16 * 2 ** 20);
  await host.run('mkfs.ext4', '-q', '-F', image);
  for (const path of [mountPoint, stage, marks]) await mkdir(path);
  await host.run('mount', '-o', 'loop', image, mountPoint);
  await writeFile(join(mountPoint, 'file'), 'kept');
  await host.run('fsfreeze', '-f', mountPoint);
  let isCopied = false;
  const liveDisks = new LiveDisks(host.folder, host.calls);
  const copying = copyAtRest(liveDisks, image, stage, AbortSignal.timeout(60_000)).finally(() => {
    isCopied = true;
  });
  // An attempt was made and given up. It is frozen still: thawing it succeeds, which it does only for what is.
  let changes = 0;
  for await (const { filename } of watch(marks, { signal: AbortSignal.timeout(60_000) }))
    if (filename === 'image' && ++changes === 3) break;
  assert.equal(isCopied, false);
  await host.run('fsfreeze', '-u', mountPoint);
  const copy = (await copying) ?? assert.fail('no copy');
  await host.run('e2fsck', '-n', '-f', copy);
  assert.match(await host.run('debugfs', '-R', 'cat file', copy), /kept/);
  // Nothing of ours holds it any more, and it is not frozen.
  await writeFile(join(mountPoint, 'file'), 'written on');
  await host.run('umount', mountPoint);
  assert.deepEqual(await readdir(marks), []);
});
