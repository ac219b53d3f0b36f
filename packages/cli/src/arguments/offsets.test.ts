import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOffsets } from './offsets.ts';

test('an offset is one of stdout, or of both streams', () => {
  assert.deepEqual(parseOffsets('4096'), { stdoutOffset: 4096, stderrOffset: 0 });
  assert.deepEqual(parseOffsets('4096-120'), { stdoutOffset: 4096, stderrOffset: 120 });
  for (const text of ['', '-1', '1-', 'x', '1-2-3', '1.5'])
    assert.throws(() => parseOffsets(text), /4096-120/, text);
});
