import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QuerySemaphore, QUERY_LIMITS } from './query-semaphore.ts';

/** Addresses of the form SCOPE.NUMBER. */
const scopeOf = (client: string) => client.split('.')[0] ?? '';

function fill(semaphore: QuerySemaphore, clients: readonly string[]): Map<string, number> {
  const taken = new Map<string, number>();
  for (let isFull = false; !isFull;) {
    isFull = true;
    for (const client of clients) {
      if (semaphore.tryAcquire(client) === null) continue;
      taken.set(client, (taken.get(client) ?? 0) + 1);
      isFull = false;
    }
  }
  return taken;
}

test('one scope takes at most half of the semaphore, with any number of sandboxes', () => {
  const semaphore = new QuerySemaphore(QUERY_LIMITS, scopeOf);
  fill(
    semaphore,
    Array.from({ length: 5000 }, (_, index) => `greedy.${index}`),
  );
  assert.ok(semaphore.total <= QUERY_LIMITS.maxPending / 2, `${semaphore.total} are under way`);
  const taken = fill(semaphore, ['other.1']);
  assert.equal(taken.get('other.1'), QUERY_LIMITS.maxPendingPerClient);
});

test('a scope keeps its reserve while other scopes have taken all permits', () => {
  const semaphore = new QuerySemaphore(QUERY_LIMITS, scopeOf);
  fill(
    semaphore,
    Array.from({ length: 4000 }, (_, index) => `s${index % 40}.${index}`),
  );
  assert.ok(semaphore.total >= QUERY_LIMITS.maxPending);
  assert.equal(fill(semaphore, ['other.1']).get('other.1'), 4);
});

test('queries of a removed client are aborted, and count until they end', () => {
  const semaphore = new QuerySemaphore(QUERY_LIMITS, scopeOf);
  const [first, other] = [semaphore.tryAcquire('a.1'), semaphore.tryAcquire('a.2')];
  assert.ok(first !== null && other !== null);
  semaphore.forget('a.1');
  const next = semaphore.tryAcquire('a.1');
  assert.deepEqual(
    [first, other, next].map((permit) => permit?.signal.aborted),
    [true, false, false],
  );
  assert.equal(semaphore.total, 3);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  assert.equal(semaphore.total, 2);
});
