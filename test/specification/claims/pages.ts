import assert from 'node:assert/strict';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';

/** Three that were never started, found by a label of their own. */
async function threeBoxes(
  ground: Ground,
): Promise<{ readonly query: string; readonly ids: readonly string[] }> {
  return await ground.shared('three', async () => {
    const labels = { three: ground.fresh('l') };
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) ids.unshift((await ground.create({ labels })).body.id);
    return { query: `labels=${encodeURIComponent(JSON.stringify(labels))}`, ids };
  });
}

export const pageClaims: readonly Claim[] = [
  claimOnce(
    'page.data',
    'What the page holds, newest first',
    'sandboxes that were made one after the other',
    async (ground) => {
      const { query, ids } = await threeBoxes(ground);
      const { body } = await ground.rest('GET', `/sandboxes?${query}`);
      assert.deepEqual(
        body.data.map(({ id }: Json) => id),
        ids,
      );
      assert.deepEqual(Object.keys(body).toSorted(), ['data', 'has_more', 'next_cursor']);
    },
  ),
  claimOnce(
    'page.has_more',
    'Whether there is another page',
    'true on the first of two, false on the second',
    async (ground) => {
      const { query } = await threeBoxes(ground);
      const { body: first } = await ground.rest('GET', `/sandboxes?${query}&limit=2`);
      const { body: last } = await ground.rest(
        'GET',
        `/sandboxes?${query}&limit=2&cursor=${encodeURIComponent(first.next_cursor)}`,
      );
      assert.deepEqual([first.has_more, last.has_more], [true, false]);
    },
  ),
  claimOnce(
    'page.next_cursor',
    'What the next page is asked for with; null on the last',
    'two pages together hold everything once',
    async (ground) => {
      const { query, ids } = await threeBoxes(ground);
      const { body: first } = await ground.rest('GET', `/sandboxes?${query}&limit=2`);
      const { body: last } = await ground.rest(
        'GET',
        `/sandboxes?${query}&limit=2&cursor=${encodeURIComponent(first.next_cursor)}`,
      );
      assert.deepEqual(
        [...first.data, ...last.data].map(({ id }: Json) => id),
        ids,
      );
      assert.equal(last.next_cursor, null);
    },
  ),
  claimOnce(
    'query.limit',
    'How many a page holds at most',
    'one of three is shown; 0, 101 and a word are refused by field',
    async (ground) => {
      const { query } = await threeBoxes(ground);
      assert.equal((await ground.rest('GET', `/sandboxes?${query}&limit=1`)).body.data.length, 1);
      for (const limit of ['0', '101', 'x']) {
        const { status, body } = await ground.rest('GET', `/sandboxes?limit=${limit}`);
        assert.deepEqual(
          [status, body.error.code, body.error.details.field],
          [400, 'invalid_request', 'limit'],
        );
      }
    },
  ),
  claimOnce(
    'query.cursor',
    'Continues from `next_cursor` of the page before',
    'one that no page gave is 400 `invalid_cursor`',
    async (ground) => {
      const { status, body } = await ground.rest('GET', '/sandboxes?cursor=made-up');
      assert.deepEqual([status, body.error.code], [400, 'invalid_cursor']);
    },
  ),
  claimOnce(
    'query.labels',
    'A JSON object: shows sandboxes that have all of these labels',
    'three of all are shown; what is no JSON is refused by field',
    async (ground) => {
      const { query, ids } = await threeBoxes(ground);
      assert.equal((await ground.rest('GET', `/sandboxes?${query}`)).body.data.length, ids.length);
      const { status, body } = await ground.rest('GET', '/sandboxes?labels=x');
      assert.deepEqual([status, body.error.details.field], [400, 'labels']);
    },
  ),
  claim(
    'query.start',
    'Whether the sandbox is started as well',
    'with it the sandbox is running in the end, without it is `created`',
    async (ground) => {
      const { body } = await ground.create({}, '?start=true');
      await ground.until(body.id, 'running');
      await ground.remove(body.id);
      assert.equal((await ground.create({}, '?start=false')).body.status, 'created');
    },
  ),
  claim(
    'query.wait_for',
    'Holds the answer until the sandbox runs, or cannot',
    'the status in the answer is running',
    async (ground) => {
      const { body } = await ground.create({}, '?start=true&wait_for=running&wait_timeout=90');
      assert.equal(body.status, 'running');
      await ground.remove(body.id);
      const { status, body: answer } = await ground.create({}, '?start=true&wait_for=stopped');
      assert.deepEqual([status, answer.error.details.field], [400, 'wait_for']);
    },
    { covers: ['query.wait_for=running'] },
  ),
  claimOnce(
    'query.wait_timeout',
    'For how many seconds the answer is held at most; only with `wait_for`',
    'with 0 the answer is 200 with the status as it is; without `wait_for` it is refused',
    async (ground) => {
      const { status, body } = await ground.create({}, '?start=true&wait_for=running&wait_timeout=0');
      assert.deepEqual([status, body.status], [200, 'starting']);
      const refused = await ground.create({}, '?start=true&wait_timeout=1');
      assert.deepEqual([refused.status, refused.body.error.details.field], [400, 'wait_timeout']);
    },
  ),
];
