import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSeconds, wholeNumber } from './number.ts';

test('times are seconds, or have a unit', () => {
  assert.deepEqual(['90', '90s', '10m', '1h', '2d', '0'].map(parseSeconds), [90, 90, 600, 3600, 172_800, 0]);
  for (const text of ['', 'h', '1.5h', '-1', '1w'])
    assert.throws(() => parseSeconds(text), /Give seconds/, text);
});

test('a whole number has a least value', () => {
  assert.equal(wholeNumber(1)('7'), 7);
  for (const text of ['0', '-3', '1.5', '', 'x', '99999999999999999999'])
    assert.throws(() => wholeNumber(1)(text), /at least 1/, text);
});
