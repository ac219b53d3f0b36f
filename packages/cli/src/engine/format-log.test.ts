import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogLine } from './format-log.ts';

test('a JSON line of the log is shown with time, level, message and its fields', () => {
  const line =
    '{"level":30,"time":1700000000000,"pid":7,"hostname":"h","sandboxId":"web","durationMs":41,"msg":"running"}';
  assert.equal(formatLogLine(line), '2023-11-14T22:13:20.000Z info  running sandboxId=web durationMs=41');
});

test('a line that is no log entry stays as it is', () => {
  for (const line of ['Segmentation fault', '{"a":1}', '17', '']) assert.equal(formatLogLine(line), line);
});

test('of an error only what it says is shown', () => {
  const line =
    '{"level":50,"time":0,"err":{"message":"no space","stack":"Error: no space\\n at x"},"msg":"failed"}';
  assert.equal(formatLogLine(line), '1970-01-01T00:00:00.000Z error failed err="no space"');
});
