import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentAnswers } from './recent-answers.ts';

test('an answer holds for the same question and half a minute', () => {
  let now = 1000;
  const answers = new RecentAnswers(() => now);
  assert.equal(answers.has({ image: 'a' }), false);
  answers.note({ image: 'a' });
  assert.equal(answers.has({ image: 'a' }), true);
  assert.equal(answers.has({ image: 'b' }), false);
  now += 29_000;
  assert.equal(answers.has({ image: 'a' }), true);
  now += 2000;
  assert.equal(answers.has({ image: 'a' }), false);
});

test('no more than some hundred are kept, and the oldest goes first', () => {
  const answers = new RecentAnswers(() => 0);
  for (let index = 0; index < 501; index++) {
    answers.note({ index });
    // Asked for again and again, so it is never the oldest.
    answers.note({ index: 1 });
  }
  assert.equal(answers.has({ index: 0 }), false);
  assert.equal(answers.has({ index: 1 }), true);
  assert.equal(answers.has({ index: 500 }), true);
});

test('a forgotten answer is requested again', () => {
  const answers = new RecentAnswers(() => 0);
  answers.note({});
  answers.forget();
  assert.equal(answers.has({}), false);
});
