import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_PATTERNS } from '@svc/contract/event-types';
import { countChosen, EVENT_GROUPS, toggleCategory, toggleType, type Chosen } from './choose-events.ts';

test('every event can be chosen, in its category', () => {
  const offered = EVENT_GROUPS.flatMap(({ category, types }) => [
    `${category}.*`,
    ...types.map(({ type }) => type),
  ]);
  assert.deepEqual(['*', ...offered].toSorted(), [...EVENT_PATTERNS].toSorted());
});

test('a category replaces its types, and one type taken out of it leaves the others', () => {
  const quota = EVENT_GROUPS.find(({ category }) => category === 'quota');
  assert.ok(quota);
  const one: Chosen = ['sandbox_ending', 'quota_exceeded'];
  const whole = toggleCategory(one, quota);
  assert.deepEqual(whole, ['sandbox_ending', 'quota.*']);
  assert.equal(countChosen(whole, quota), 2);
  assert.deepEqual(toggleCategory(whole, quota), ['sandbox_ending']);
  assert.deepEqual(toggleType(whole, quota, 'quota_exceeded'), ['sandbox_ending', 'quota_changed']);
  assert.deepEqual(toggleType(one, quota, 'quota_exceeded'), ['sandbox_ending']);
  assert.equal(countChosen(one, quota), 1);
});
