import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGib, parseMib } from './memory.ts';

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

test('storage is given in gibibytes, with or without a unit', () => {
  assert.deepEqual(['10', '10G', '10gib', '1.5T', '2048M'].map(parseGib), [10, 10, 10, 1536, 2]);
  for (const text of ['', '0', '-1', '1.5', '1.5G', '512M', '10K', '1e3'])
    assert.throws(() => parseGib(text), /gibibytes/, text);
});
