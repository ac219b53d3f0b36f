import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errnoOf, isErrno } from './errno.ts';

test('an error of the system is known by its code', () => {
  let caught: unknown;
  try {
    readFileSync('/nonexistent/file');
  } catch (error) {
    caught = error;
  }
  assert.equal(errnoOf(caught), 'ENOENT');
  assert.ok(isErrno(caught, 'EACCES', 'ENOENT'));
  assert.ok(!isErrno(caught, 'EACCES'));
});

test('other errors, and what is no error, have no code', () => {
  for (const other of [
    new Error('x'),
    Object.assign(new Error('x'), { code: undefined }),
    { code: 'ENOENT' },
    null,
  ])
    assert.ok(!isErrno(other, 'ENOENT', 'undefined'));
});
