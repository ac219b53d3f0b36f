import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alignSamples } from './align-samples.ts';

test('series that were measured at different times share one axis', () => {
  const aligned = alignSamples([
    {
      name: 'a',
      samples: [
        [1000, 1],
        [3000, 3],
      ],
    },
    { name: 'b', samples: [[2000, 0]] },
  ]);
  assert.deepEqual(aligned, [
    [1, 2, 3],
    [1, null, 3],
    [null, 0, null],
  ]);
  assert.deepEqual(alignSamples([]), [[]]);
});
