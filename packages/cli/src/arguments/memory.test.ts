import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMib } from './memory.ts';

test('memory is given in mebibytes, with or without a unit', () => {
  assert.deepEqual(
    ['512', '512M', '512mib', '2G', '1.5g', '1T'].map(parseMib),
    [512, 512, 512, 2048, 1536, 1_048_576],
  );
});

test('memory that is no whole number of mebibytes is refused', () => {
  for (const text of ['', '0', '-1', '1.3M', '512K', 'G', '1e3', '0x10', '1 G'])
    assert.throws(() => parseMib(text), /mebibytes/, text);
});
