import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinPath, parentOf } from './guest-path.ts';

test('a path leads down and up again', () => {
  for (const [folder, name, path] of [
    ['/', 'a', '/a'],
    ['/a', 'b c', '/a/b c'],
  ] as const) {
    assert.equal(joinPath(folder, name), path);
    assert.equal(parentOf(path), folder);
  }
  assert.equal(parentOf('/'), '/');
});
