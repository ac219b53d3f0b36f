import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CpuPlaces } from './cpu-places.ts';

test('sandboxes are placed in turn, and where one went before where others are', () => {
  const places = new CpuPlaces(4);
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((handle) => places.take(handle, 1)),
    [0, 1, 2, 3, 0],
  );
  places.leave('c');
  assert.equal(places.take('f', 1), 2);
  // 0 has two, the others one each: in turn again.
  assert.deepEqual([places.take('g', 1), places.take('h', 1)], [3, 1]);
});

test('one that stays is not joined by those that come and go beside it', () => {
  const places = new CpuPlaces(2);
  assert.equal(places.take('quiet', 1), 0);
  for (let count = 0; count < 5; count++) {
    assert.equal(places.take('other', 1), 1);
    places.leave('other');
  }
});

test('a wider one takes neighbouring places that are the emptiest together, also around the end', () => {
  const places = new CpuPlaces(4);
  for (const handle of ['a', 'b']) places.take(handle, 1);
  assert.equal(places.take('wide', 2), 2);
  places.leave('a');
  places.leave('wide');
  assert.equal(places.take('wider', 3), 2, 'all but the one at 1');
});

test('who has as many CPUs as there are takes no place, and leaving twice or never having come is fine', () => {
  const places = new CpuPlaces(2);
  assert.deepEqual([places.take('whole', 2), places.take('more', 64)], [0, 0]);
  places.leave('whole');
  places.leave('whole');
  places.leave('nobody');
  assert.deepEqual([places.take('a', 1), places.take('b', 1)], [0, 1]);
});
