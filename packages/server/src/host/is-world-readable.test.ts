import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../testing/test-server.ts';
import { isWorldReadable } from './is-world-readable.ts';

test('a file is world-readable if it and all its folders allow it', async (t) => {
  const folder = await makeFolder(t);
  const inner = join(folder, 'inner');
  const file = join(inner, 'file');
  await mkdir(inner);
  await writeFile(file, '');
  const can = async (modes: readonly [outer: number, inner: number, file: number]) => {
    const [forFolder, forInner, forFile] = modes;
    await chmod(folder, forFolder);
    await chmod(inner, forInner);
    await chmod(file, forFile);
    return isWorldReadable(file);
  };
  assert.equal(await can([0o755, 0o755, 0o644]), true);
  assert.equal(await can([0o711, 0o711, 0o604]), true);
  assert.equal(await can([0o700, 0o755, 0o644]), false);
  assert.equal(await can([0o755, 0o750, 0o644]), false);
  assert.equal(await can([0o755, 0o755, 0o640]), false);
});
