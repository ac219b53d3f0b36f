import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat, truncate, watch, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { copyAtRest } from './copy-at-rest.ts';

const run = promisify(execFile);

test('a mounted disk is copied when whoever else froze it has let it go, and is never thawed for them', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-at-rest-'));
  const [image, mountPoint, stage] = ['image', 'mounted', 'stage'].map((name) => join(folder, name));
  assert.ok(image !== undefined && mountPoint !== undefined && stage !== undefined);
  t.after(async () => {
    await run('umount', [mountPoint]).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  });
  await writeFile(image, '');
  await truncate(image, 16 * 2 ** 20);
  await run('mkfs.ext4', ['-q', '-F', image]);
  for (const path of [mountPoint, stage]) await mkdir(path);
  await run('mount', ['-o', 'loop', image, mountPoint]);
  await writeFile(join(mountPoint, 'file'), 'kept');
  await run('fsfreeze', ['-f', mountPoint]);
  let isCopied = false;
  const copying = copyAtRest(image, stage, AbortSignal.timeout(60_000)).finally(() => {
    isCopied = true;
  });
  // An attempt was made and given up. It is frozen still: thawing it succeeds, which it does only for what is.
  let marks = 0;
  for await (const { filename } of watch(stage, { signal: AbortSignal.timeout(60_000) }))
    if (filename === 'mount.frozen' && ++marks === 3) break;
  assert.equal(isCopied, false);
  await run('fsfreeze', ['-u', mountPoint]);
  const copy = (await copying) ?? assert.fail('no copy');
  await run('e2fsck', ['-n', '-f', copy]);
  assert.match((await run('debugfs', ['-R', 'cat file', copy])).stdout, /kept/);
  // Nothing of ours holds it any more, and it is not frozen.
  await writeFile(join(mountPoint, 'file'), 'written on');
  await run('umount', [mountPoint]);
  await assert.rejects(stat(join(stage, 'mount.frozen')), /ENOENT/);
});
