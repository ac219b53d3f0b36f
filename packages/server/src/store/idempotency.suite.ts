import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import {
  claimKey,
  endKey,
  extendLease,
  forgetOldKeys,
  isClaimed,
  isOver,
  releaseAllKeys,
  releaseKey,
  REMEMBERED_MS,
  resumeKey,
  settleKey,
  unsettleKey,
} from './idempotency.ts';

const LEASE_MS = 60_000;
const claim = (owner: string, key = 'k') => ({ scope: 'org', key, owner });

/** What every database must do the same with idempotency keys. */
export function idempotencySuite(name: string, open: (t: TestContext) => Promise<Database>): void {
  describe(`idempotency keys on ${name}`, () => {
    test('of many who claim a key at once, one gets it and the others see its row', async (t) => {
      const db = await open(t);
      const owners = Array.from({ length: 20 }, (_, index) => `owner-${index}`);
      const results = await Promise.all(owners.map((owner) => claimKey(db, claim(owner), 'print', LEASE_MS)));
      assert.equal(results.filter(isClaimed).length, 1);
      for (const result of results) {
        if (!isClaimed(result)) assert.deepEqual([result.status, result.fingerprint], [null, 'print']);
      }
    });

    test('an ended key gives its outcome to later requests', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', LEASE_MS);
      await endKey(db, claim('a'), { status: 200, body: '{"x":1}' });
      const found = await claimKey(db, claim('b'), 'print', LEASE_MS);
      assert.ok(!isClaimed(found));
      assert.deepEqual([found.status, found.body, isOver(found)], [200, '{"x":1}', true]);
      assert.equal(await resumeKey(db, claim('b'), LEASE_MS), false);
    });

    test('a claim whose lease ran out is taken over, and its first owner cannot settle it any more', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', -1);
      assert.ok(isClaimed(await claimKey(db, claim('b'), 'print', LEASE_MS)));
      assert.equal(await settleKey(db, claim('a'), { status: 200, body: '"a"' }, LEASE_MS), false);
      const found = await claimKey(db, claim('c'), 'print', LEASE_MS);
      assert.ok(!isClaimed(found));
      assert.deepEqual([found.owner, found.status], ['b', null]);
    });

    test('a lease that is extended in time is not taken over', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', 0);
      await extendLease(db, claim('a'), { claimedMs: LEASE_MS, settledMs: -1 });
      assert.ok(!isClaimed(await claimKey(db, claim('b'), 'print', LEASE_MS)));
    });

    test('a released key is free, a settled one is not released', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', LEASE_MS);
      await releaseKey(db, claim('a'));
      assert.ok(isClaimed(await claimKey(db, claim('b'), 'other', LEASE_MS)));
      await settleKey(db, claim('b'), { status: 200, body: 'null' }, LEASE_MS);
      await releaseKey(db, claim('b'));
      assert.ok(!isClaimed(await claimKey(db, claim('c'), 'other', LEASE_MS)));
    });

    test('a server that takes a key over for the same request repeats the work and gets that information', async (t) => {
      const db = await open(t);
      const claimed = async (owner: string, print: string, leaseMs: number) => {
        const found = await claimKey(db, claim(owner), print, leaseMs);
        assert.ok(isClaimed(found));
        return found;
      };
      const first = await claimed('a', 'print', -1);
      assert.equal(first.isRepeat, false);
      const past = new Date(Date.now() - 5000).toISOString();
      await db.updateTable('idempotency').set({ created_at: past }).execute();
      assert.deepEqual(await claimed('b', 'print', LEASE_MS), { since: past, isRepeat: true });
      await releaseKey(db, claim('b'));
      assert.deepEqual(await claimed('c', 'print', -1), { since: past, isRepeat: true });
      const other = await claimed('d', 'other', -1);
      assert.ok(!other.isRepeat && other.since > past, 'another request is other work');
      const old = new Date(Date.now() - REMEMBERED_MS - 1000).toISOString();
      await db.updateTable('idempotency').set({ created_at: old }).execute();
      assert.equal((await claimed('e', 'other', -1)).isRepeat, false, 'nor is it the same after a day');
    });

    test('of many who would resume a call whose owner is gone one does, and only then', async (t) => {
      const db = await open(t);
      const resume = (owner: string) => resumeKey(db, claim(owner), LEASE_MS);
      await claimKey(db, claim('a'), 'print', -1);
      assert.equal(await resume('b'), false, 'it has done nothing');
      assert.equal(await settleKey(db, claim('a'), { status: 200, body: '"done"' }, LEASE_MS), true);
      assert.equal(await resume('b'), false, 'its owner lives');
      await extendLease(db, claim('a'), { claimedMs: LEASE_MS, settledMs: -1 });
      const resumed = await Promise.all(['b', 'c', 'd'].map(resume));
      assert.equal(resumed.filter((isMine) => isMine).length, 1);
      const found = await claimKey(db, claim('e'), 'print', LEASE_MS);
      assert.ok(!isClaimed(found));
      assert.deepEqual([found.status, found.body, isOver(found)], [200, '"done"', false]);
    });

    test('when the server that held keys is gone they are all free at once, and outcomes stay', async (t) => {
      const db = await open(t);
      for (const key of ['begun', 'settled', 'over']) await claimKey(db, claim('a', key), 'print', LEASE_MS);
      await settleKey(db, claim('a', 'settled'), { status: 200, body: '1' }, LEASE_MS);
      await endKey(db, claim('a', 'over'), { status: 200, body: '2' });
      await releaseAllKeys(db);
      const again = await claimKey(db, claim('b', 'begun'), 'print', LEASE_MS);
      assert.ok(isClaimed(again) && again.isRepeat);
      assert.equal(await resumeKey(db, claim('b', 'settled'), LEASE_MS), true);
      const over = await claimKey(db, claim('b', 'over'), 'print', LEASE_MS);
      assert.ok(!isClaimed(over) && isOver(over));
      assert.equal(over.body, '2');
    });

    test('a settled call that is undone can be claimed again', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', LEASE_MS);
      await settleKey(db, claim('a'), { status: 200, body: 'null' }, LEASE_MS);
      await unsettleKey(db, claim('a'), LEASE_MS);
      await releaseKey(db, claim('a'));
      assert.ok(isClaimed(await claimKey(db, claim('b'), 'print', LEASE_MS)));
    });

    test('the same key of another scope is another key', async (t) => {
      const db = await open(t);
      await claimKey(db, claim('a'), 'print', LEASE_MS);
      const other = { scope: 'other', key: 'k', owner: 'b' };
      assert.ok(isClaimed(await claimKey(db, other, 'print', LEASE_MS)));
    });

    test('outcomes are forgotten after a day', async (t) => {
      const db = await open(t);
      for (const key of ['old', 'new']) {
        await claimKey(db, claim('a', key), 'print', LEASE_MS);
        await endKey(db, claim('a', key), { status: 200, body: 'null' });
      }
      const past = new Date(Date.now() - REMEMBERED_MS - 1000).toISOString();
      await db.updateTable('idempotency').set({ created_at: past }).where('key', '=', 'old').execute();
      assert.ok(isClaimed(await claimKey(db, claim('b', 'old'), 'other', LEASE_MS)));
      await db.updateTable('idempotency').set({ created_at: past }).where('key', '=', 'old').execute();
      await forgetOldKeys(db);
      const left = await db.selectFrom('idempotency').select('key').execute();
      assert.deepEqual(
        left.map(({ key }) => key),
        ['new'],
      );
    });
  });
}
