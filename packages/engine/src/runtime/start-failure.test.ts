import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastComplaint } from './start-failure.ts';

const LOG = [
  '{"level":"warning","msg":"cgroup v1","time":"2026-01-01T00:00:00Z"}',
  '{"level":"error","msg":"first","time":"2026-01-01T00:00:00Z"}',
  '{"level":"error","msg":"runc run failed: unable to start container process","time":"2026-01-01T00:00:00Z"}',
  '{"level":"info","msg":"bye"}',
  '{"level":"error","msg":"cut sho',
].join('\n');

test('the reason is the last complete error of the log', () => {
  assert.equal(lastComplaint(LOG), 'runc run failed: unable to start container process');
});

test('a log without errors, or without sense, gives no reason', () => {
  assert.equal(lastComplaint(''), undefined);
  assert.equal(lastComplaint('{"level":"info","msg":"x"}\nnull\n7\n{"level":"error"}\nnot json'), undefined);
});

test('entries that follow each other without a line break are told apart', () => {
  const log = '{"level":"info","msg":"begins"}{"level":"error","msg":"no such device"}';
  assert.equal(lastComplaint(log), 'no such device');
});
