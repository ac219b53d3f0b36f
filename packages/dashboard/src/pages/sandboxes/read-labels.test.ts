import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLabels } from './read-labels.ts';

test('labels are read as they are typed, and half of one filters nothing yet', () => {
  assert.deepEqual(readLabels('team=web, stage = test '), { team: 'web', stage: 'test' });
  assert.deepEqual(readLabels('note=a=b'), { note: 'a=b' });
  assert.equal(readLabels('tea'), undefined);
  assert.equal(readLabels(''), undefined);
});
