import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import { findPasswordHash, putPasswordHash } from './passwords.ts';
import { createOwnerLink, takeOwnerLink } from './owner-links.ts';
import {
  beginSecondFactor,
  confirmSecondFactor,
  findSecondFactor,
  takeRecoveryHash,
  takeStep,
} from './second-factors.ts';
import {
  createSession,
  createSignInLink,
  endSessions,
  findSession,
  forgetOldSignIns,
  takeSignInLink,
} from './sessions.ts';
import {
  findFailures,
  forgiveFailures,
  noteFailure,
  takeFailureBack,
  type FailureRule,
} from './sign-in-failures.ts';
import { deleteUser, ensureUser } from './users.ts';

const LONG_AGO = new Date(0).toISOString();
const FAR_AHEAD = '9999-01-01T00:00:00.000Z';
const RULE: FailureRule = { free: 5, waitsMs: [60_000], rememberedMs: 3_600_000 };

/** What every database must do the same with accounts. */
export function accountsSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`accounts on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const { id: userId } = await ensureUser(db, 'ada@acme.example');
      const begin = (expiresAt: string) =>
        createSession(db, {
          userId,
          hasSecondFactor: false,
          organizationId: null,
          userAgent: 'test',
          sourceAddress: null,
          expiresAt,
        });
      return { db, userId, begin };
    };

    test('a password is replaced, and goes with its user, as do sessions, links and factors', async (t) => {
      const { db, userId, begin } = await prepare(t);
      await putPasswordHash(db, userId, 'one');
      await putPasswordHash(db, userId, 'two');
      assert.equal(await findPasswordHash(db, userId), 'two');
      const { id } = await begin(FAR_AHEAD);
      const link = await createSignInLink(db, userId, FAR_AHEAD);
      await beginSecondFactor(db, userId, 'sealed');
      await deleteUser(db, userId);
      assert.deepEqual(
        [
          await findPasswordHash(db, userId),
          await findSession(db, id),
          await takeSignInLink(db, link),
          await findSecondFactor(db, userId),
        ],
        [undefined, undefined, undefined, undefined],
      );
    });

    test('sessions end one by one or all but one, and when their time is over', async (t) => {
      const { db, userId, begin } = await prepare(t);
      const [one, two, three] = [await begin(FAR_AHEAD), await begin(FAR_AHEAD), await begin(FAR_AHEAD)];
      assert.equal(await endSessions(db, userId, { only: one.id }), 1);
      assert.equal(await findSession(db, one.id), undefined);
      assert.equal(await endSessions(db, userId, { except: two.id }), 1);
      assert.equal(await findSession(db, three.id), undefined);
      assert.equal((await findSession(db, two.id))?.user.email, 'ada@acme.example');
      const old = await begin(LONG_AGO);
      assert.equal(await findSession(db, old.id), undefined);
      await forgetOldSignIns(db, LONG_AGO);
      assert.equal(await endSessions(db, userId), 1);
    });

    test('of many who take a link, a code or a recovery code at once, one gets it', async (t) => {
      const { db, userId } = await prepare(t);
      const atOnce = async (take: () => Promise<unknown>) =>
        (await Promise.all(Array.from({ length: 5 }, take))).filter((taken) => Boolean(taken)).length;
      const link = await createSignInLink(db, userId, FAR_AHEAD);
      assert.equal(await atOnce(() => takeSignInLink(db, link)), 1);
      const former = await createOwnerLink(db, FAR_AHEAD);
      const owners = await createOwnerLink(db, FAR_AHEAD);
      assert.equal(await atOnce(() => takeOwnerLink(db, owners)), 1);
      assert.equal(await takeOwnerLink(db, former), false);
      assert.equal(await takeOwnerLink(db, await createOwnerLink(db, LONG_AGO)), false);
      assert.equal(await beginSecondFactor(db, userId, 'first'), true);
      assert.equal(await beginSecondFactor(db, userId, 'second'), true);
      await confirmSecondFactor(db, userId, ['a', 'b']);
      assert.equal(await beginSecondFactor(db, userId, 'third'), false);
      assert.equal((await findSecondFactor(db, userId))?.sealedSecret, 'second');
      assert.equal(await atOnce(() => takeStep(db, userId, 7)), 1);
      assert.equal(await takeStep(db, userId, 6), false);
      assert.equal(await atOnce(() => takeRecoveryHash(db, userId, 'a')), 1);
      assert.deepEqual((await findSecondFactor(db, userId))?.recoveryHashes, ['b']);
    });

    test('failures add up, are taken back, forgiven, and forgotten with time', async (t) => {
      const { db } = await prepare(t);
      const note = (rule: Partial<FailureRule> = {}) => noteFailure(db, 'account:x', { ...RULE, ...rule });
      await Promise.all(Array.from({ length: 4 }, () => note()));
      await takeFailureBack(db, 'account:x');
      assert.equal((await findFailures(db, 'account:x'))?.count, 3);
      assert.equal(await note({ rememberedMs: -60_000 }), true);
      assert.equal((await findFailures(db, 'account:x'))?.count, 1);
      await forgiveFailures(db, 'account:x');
      assert.equal(await findFailures(db, 'account:x'), undefined);
    });

    test('of many attempts at once as many are let through as are free', async (t) => {
      const { db } = await prepare(t);
      const noted = await Promise.all(
        Array.from({ length: 40 }, () => noteFailure(db, 'account:x', { ...RULE, free: 7 })),
      );
      assert.equal(noted.filter(Boolean).length, 7);
      assert.equal((await findFailures(db, 'account:x'))?.count, 7);
    });

    test('an attempt is allowed again after the delay that grows with failures', async (t) => {
      const { db } = await prepare(t);
      const tryAt = async (count: number, secondsAgo: number) => {
        const last_at = new Date(Date.now() - secondsAgo * 1000).toISOString();
        await forgiveFailures(db, 'account:x');
        await db.insertInto('sign_in_failures').values({ subject: 'account:x', count, last_at }).execute();
        return await noteFailure(db, 'account:x', { ...RULE, waitsMs: [100_000, 200_000] });
      };
      assert.deepEqual([await tryAt(5, 90), await tryAt(5, 101)], [false, true]);
      assert.deepEqual([await tryAt(6, 190), await tryAt(6, 201)], [false, true]);
      assert.deepEqual([await tryAt(60, 190), await tryAt(60, 201)], [false, true]);
      assert.equal((await findFailures(db, 'account:x'))?.count, 61);
    });
  });
}
