import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeEmptyFolder, removeFile, removeTree } from './run-files.ts';

test('a tree is removed with its content, and targets of its links stay', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-run-files-'));
  const outside = join(folder, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'kept'), 'kept');
  const tree = join(folder, 'tree');
  mkdirSync(join(tree, 'a', 'b'), { recursive: true });
  writeFileSync(join(tree, 'a', 'file'), '');
  symlinkSync(outside, join(tree, 'a', 'b', 'link'));
  removeTree(tree);
  assert.deepEqual(readdirSync(folder), ['outside']);
  assert.equal(readFileSync(join(outside, 'kept'), 'utf8'), 'kept');
  removeTree(join(outside, 'kept'));
  assert.deepEqual(readdirSync(outside), []);
  removeTree(folder);
  assert.equal(existsSync(folder), false);
});

test('removing a missing path succeeds', () => {
  const missing = join(tmpdir(), 'svc-run-files-missing');
  removeTree(missing);
  removeFile(missing);
  removeEmptyFolder(missing);
});

test('a mount point is busy, and a folder with content is not removed as an empty one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-run-files-'));
  const mounted = join(folder, 'mounted');
  mkdirSync(mounted);
  execFileSync('mount', ['-t', 'tmpfs', 'none', mounted]);
  try {
    assert.throws(() => removeTree(folder), { code: 'EBUSY' });
    assert.throws(() => removeEmptyFolder(folder), { code: 'ENOTEMPTY' });
  } finally {
    execFileSync('umount', [mounted]);
  }
  removeTree(folder);
});
