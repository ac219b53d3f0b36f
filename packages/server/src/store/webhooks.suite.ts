import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { EventPattern } from '@svc/contract/rest';
import type { Database } from './database.ts';
import { deleteOrganization } from './delete-organization.ts';
import { appendEvent } from './events.ts';
import { ensureOrganization } from './organizations.ts';
import {
  claimAgain,
  claimDelivery,
  countPending,
  dropBacklog,
  endAttempt,
  findDelivery,
  insertTest,
  listDeliveries,
  listDueWebhooks,
  pruneDeliveries,
  releaseAllDeliveries,
  releaseDelivery,
} from './webhook-deliveries.ts';
import {
  disableWebhook,
  findWebhook,
  forgetFormerSecrets,
  insertWebhook,
  listWebhooks,
  removeWebhook,
  rotateSecret,
} from './webhooks.ts';

const ACTOR = { kind: 'system', code: 'test', label: 'Test' } as const;
const ONE = { owner: 'one', leaseMs: 60_000 };
const TWO = { owner: 'two', leaseMs: 60_000 };
const FIRST_PAGE = { limit: 100, after: null };
const ATTEMPT = { at: '2026-01-01T00:00:00.000Z', status: 500, latencyMs: 1, error: 'no', response: '' };

/** What every database must do the same with webhooks. */
export function webhooksSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`webhooks on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const organizationId = await ensureOrganization(db, 'acme');
      const hook = async (eventTypes: readonly EventPattern[], organization = organizationId) => {
        const settings = { url: 'https://example.com/', description: '', eventTypes, isEnabled: true };
        return await insertWebhook(db, organization, settings, (id) => `sealed ${id}`);
      };
      const happen = async (organization = organizationId) =>
        await db.transaction().execute((transaction) => appendEvent(transaction, image(organization)));
      const typesOf = async (webhookId: string) =>
        (await listDeliveries(db, webhookId, FIRST_PAGE)).map(({ eventType }) => eventType);
      return { db, organizationId, hook, happen, typesOf };
    };

    test('queued deliveries beyond the limit are given up, oldest first, except those being sent', async (t) => {
      const { db, hook, happen } = await prepare(t);
      const { id } = await hook(['*']);
      const other = await hook(['*']);
      for (let count = 0; count < 5; count++) await happen();
      const claimed = await claimDelivery(db, id, ONE);
      assert.equal(await countPending(db), 10);
      assert.deepEqual(await dropBacklog(db, 5), []);
      const dropped = await dropBacklog(db, 2);
      assert.deepEqual(new Set(dropped.map(({ webhookId }) => webhookId)), new Set([id, other.id]));
      assert.deepEqual(
        dropped.map(({ count }) => count),
        [3, 3],
      );
      const rows = (await listDeliveries(db, id, FIRST_PAGE)).toReversed();
      const waiting = rows.filter(({ status }) => status === 'pending');
      assert.equal(waiting.length, 2);
      assert.ok(waiting.some((row) => row.id === claimed?.id));
      const gone = rows.find(({ status }) => status === 'failed');
      assert.match(gone?.attempts.at(-1)?.error ?? '', /dropped: more than 2 messages were waiting/);
      assert.deepEqual([gone?.attemptsLeft, gone?.nextAttemptAt], [0, null]);
      assert.deepEqual(await dropBacklog(db, 2), []);
    });

    test('an event is to be delivered to those of its organization who ask for it, with it or not at all', async (t) => {
      const { db, organizationId, hook, happen, typesOf } = await prepare(t);
      const other = await ensureOrganization(db, 'other');
      const subscribed = [
        await hook(['image_pulled']),
        await hook(['sandbox.*', 'image.*']),
        await hook(['*']),
      ];
      const disabled = await hook(['*']);
      await disableWebhook(db, disabled.id, 'why not');
      const untold = [await hook(['image_removed', 'sandbox.*']), await hook(['*'], other), disabled];
      const undone = db.transaction().execute(async (transaction) => {
        await appendEvent(transaction, image(organizationId));
        throw new Error('undone');
      });
      await assert.rejects(undone, /undone/);
      for (const { id } of subscribed) assert.deepEqual(await typesOf(id), []);
      await happen();
      for (const { id } of subscribed) assert.deepEqual(await typesOf(id), ['image_pulled']);
      for (const { id } of untold) assert.deepEqual(await typesOf(id), []);
      const due = (await listDueWebhooks(db)).map(({ id }) => id).toSorted();
      assert.deepEqual(due, subscribed.map(({ id }) => id).toSorted());
    });

    test('each delivery is had by one of many, and by another when the lease is over or it is let go', async (t) => {
      const { db, hook, happen } = await prepare(t);
      const { id } = await hook(['*']);
      for (let index = 0; index < 10; index++) await happen();
      const taken = await Promise.all(
        Array.from({ length: 20 }, (_, index) => claimDelivery(db, id, index % 2 === 0 ? ONE : TWO)),
      );
      const ids = taken.flatMap((delivery) => (delivery === undefined ? [] : [delivery.id]));
      assert.equal(new Set(ids).size, ids.length);
      while (ids.length < 10) ids.push((await claimDelivery(db, id, ONE))?.id ?? assert.fail('one is left'));
      assert.equal(await claimDelivery(db, id, TWO), undefined);
      assert.deepEqual(await listDueWebhooks(db), []);

      const past = new Date(Date.now() - 1000).toISOString();
      await db
        .updateTable('webhook_deliveries')
        .set({ claimed_until: past })
        .where('id', '=', ids[3] ?? '')
        .execute();
      const [found] = await listDueWebhooks(db);
      assert.equal(found?.id, id);
      const again = await claimDelivery(db, id, TWO);
      assert.equal(again?.id, ids[3]);
      assert.ok(again);
      await releaseDelivery(db, again.id, 'one');
      assert.equal(await claimDelivery(db, id, ONE), undefined, 'only its owner lets it go');
      await endAttempt(db, again, 'one', { attempt: ATTEMPT, nextAttemptAt: null });
      assert.equal((await findDelivery(db, id, again.id))?.status, 'pending', 'and notes an attempt');
      await releaseDelivery(db, again.id, 'two');
      assert.equal((await claimDelivery(db, id, ONE))?.id, again.id);
      await releaseAllDeliveries(db);
      assert.ok(await claimDelivery(db, id, TWO));
    });

    test('an attempt that failed waits for its time, one that was taken is over, and either can be repeated', async (t) => {
      const { db, hook, happen } = await prepare(t);
      const { id } = await hook(['*']);
      await happen();
      const first = await claimDelivery(db, id, ONE);
      assert.ok(first);
      const nextAttemptAt = new Date(Date.now() + 60_000).toISOString();
      await endAttempt(db, first, 'one', { attempt: ATTEMPT, nextAttemptAt });
      assert.equal(await claimDelivery(db, id, ONE), undefined);
      const waiting = await findDelivery(db, id, first.id);
      assert.deepEqual(
        [waiting?.status, waiting?.attempts, waiting?.attemptsLeft, waiting?.nextAttemptAt],
        ['pending', [ATTEMPT], first.attemptsLeft - 1, nextAttemptAt],
      );
      assert.ok(waiting);
      const again = await claimAgain(db, waiting, TWO);
      assert.ok(again);
      assert.equal(await claimAgain(db, waiting, ONE), undefined, 'another worker sends it');
      const attempt = { ...ATTEMPT, status: 200, error: null };
      await endAttempt(db, again, 'two', { attempt, nextAttemptAt: null });
      const over = await findDelivery(db, id, first.id);
      assert.deepEqual([over?.status, over?.attempts.length, over?.attemptsLeft], ['succeeded', 2, 0]);
      assert.ok(over);
      assert.equal((await claimAgain(db, over, ONE))?.attemptsLeft, 1);
      const test_ = await insertTest(db, id, TWO);
      assert.deepEqual([test_.eventId, test_.attemptsLeft], [null, 1]);
      assert.equal(await claimAgain(db, test_, ONE), undefined, 'it belongs to who made it');
    });

    test('a secret that was replaced is kept for as long as it signs', async (t) => {
      const { db, organizationId, hook } = await prepare(t);
      const [future, past] = [60_000, -1].map((ms) => new Date(Date.now() + ms).toISOString());
      assert.ok(future !== undefined && past !== undefined);
      const formerOf = async (until: string | null) => {
        const webhook = await hook(['*']);
        const rotated = await rotateSecret(db, webhook, 'new', until);
        assert.deepEqual(
          [rotated.sealedSecret, rotated.previous],
          ['new', until === null ? null : { sealedSecret: webhook.sealedSecret, until }],
        );
        await forgetFormerSecrets(db);
        return (await findWebhook(db, organizationId, webhook.id))?.previous?.until;
      };
      assert.deepEqual(
        [await formerOf(future), await formerOf(past), await formerOf(null)],
        [future, undefined, undefined],
      );
    });

    test('deliveries go with their age, their webhook and their organization', async (t) => {
      const { db, organizationId, hook, happen, typesOf } = await prepare(t);
      const [kept, removed] = [await hook(['*']), await hook(['*'])];
      await happen();
      const past = '2020-01-01T00:00:00.000Z';
      await db.updateTable('webhook_deliveries').set({ created_at: past }).execute();
      await happen();
      await removeWebhook(db, removed.id);
      const { signal } = new AbortController();
      await pruneDeliveries(db, '2021-01-01T00:00:00.000Z', signal);
      assert.equal((await typesOf(kept.id)).length, 1);
      assert.deepEqual(await typesOf(removed.id), []);
      await db.transaction().execute((transaction) => deleteOrganization(transaction, organizationId));
      assert.deepEqual(await listWebhooks(db, organizationId), []);
      assert.equal(await findWebhook(db, null, kept.id), undefined);
      await pruneDeliveries(db, past, signal);
      assert.deepEqual(await typesOf(kept.id), []);
    });
  });
}

function image(organizationId: string) {
  const kind = { type: 'image_pulled', category: 'image' } as const;
  return { organizationId, ...kind, actor: ACTOR, payload: {}, requestId: null, sourceAddress: null };
}
