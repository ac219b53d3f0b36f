import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTime } from './time.ts';

test('a time is a date, or how long ago', () => {
  assert.equal(parseTime('2026-01-31T12:00:00Z'), '2026-01-31T12:00:00.000Z');
  const earliest = Date.now();
  const parsed = Date.parse(parseTime('10m')) + 600_000;
  assert.ok(parsed >= earliest && parsed <= Date.now(), `${parsed - earliest} ms`);
});

test('malformed times are refused', () => {
  for (const text of ['', 'soon', '10 minutes', '+101959-06-25T00:00:00Z'])
    assert.throws(() => parseTime(text), /Give a time/, text);
  assert.throws(() => parseTime('99999999999d'), /Give at most 36500d/);
});
