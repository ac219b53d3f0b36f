import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLatest } from './keep-latest.ts';

const keepAll = (entries: readonly string[]) =>
  entries.reduce<readonly string[]>((known, entry) => keepLatest(known, entry, ({ length }) => length), []);

test('the newest entries are kept within limits of count and length', () => {
  const many = Array.from({ length: 6000 }, (_, index) => String(index));
  assert.deepEqual(keepAll(many), many.slice(1000));
  const long = Array.from({ length: 30 }, (_, index) => String(index).padEnd(64 * 1024));
  assert.deepEqual(keepAll(long), long.slice(-15));
});

test('an entry above the limit for all entries is kept alone', () => {
  assert.deepEqual(
    keepAll(['a', 'b'.repeat(2_000_000)]).map(({ length }) => length),
    [2_000_000],
  );
  assert.deepEqual(keepAll(['b'.repeat(2_000_000), 'a']), ['a']);
});
