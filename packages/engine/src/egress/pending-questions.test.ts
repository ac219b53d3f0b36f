import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PendingQuestions, QUESTION_LIMITS } from './pending-questions.ts';

/** Addresses of the form SCOPE.NUMBER. */
const scopeOf = (client: string) => client.split('.')[0] ?? '';

function fill(questions: PendingQuestions, clients: readonly string[]): Map<string, number> {
  const taken = new Map<string, number>();
  for (let isFull = false; !isFull;) {
    isFull = true;
    for (const client of clients) {
      if (questions.begin(client) === null) continue;
      taken.set(client, (taken.get(client) ?? 0) + 1);
      isFull = false;
    }
  }
  return taken;
}

test('however many sandboxes a scope has, half stays free for others', () => {
  const questions = new PendingQuestions(QUESTION_LIMITS, scopeOf);
  fill(
    questions,
    Array.from({ length: 5000 }, (_, index) => `greedy.${index}`),
  );
  assert.ok(questions.total <= QUESTION_LIMITS.maxPending / 2, `${questions.total} are under way`);
  const taken = fill(questions, ['other.1']);
  assert.equal(taken.get('other.1'), QUESTION_LIMITS.maxPendingPerClient);
});

test('when many scopes have taken all, one more still has its own', () => {
  const questions = new PendingQuestions(QUESTION_LIMITS, scopeOf);
  fill(
    questions,
    Array.from({ length: 4000 }, (_, index) => `s${index % 40}.${index}`),
  );
  assert.ok(questions.total >= QUESTION_LIMITS.maxPending);
  assert.equal(fill(questions, ['other.1']).get('other.1'), 4);
});

test('questions of a client that is gone are aborted, and count until they are over', () => {
  const questions = new PendingQuestions(QUESTION_LIMITS, scopeOf);
  const [first, other] = [questions.begin('a.1'), questions.begin('a.2')];
  assert.ok(first !== null && other !== null);
  questions.forget('a.1');
  const next = questions.begin('a.1');
  assert.deepEqual(
    [first, other, next].map((question) => question?.signal.aborted),
    [true, false, false],
  );
  assert.equal(questions.total, 3);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(questions.total, 2);
});
