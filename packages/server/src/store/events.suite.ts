import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { verifyEvents } from './verify-events.ts';
import type { Database } from './database.ts';
import { appendEvent, findEvent, hashEvent, listEvents, listEventsAfter } from './events.ts';
import { ensureOrganization } from './organizations.ts';
import { pruneEvents } from './prune-events.ts';

const ACTOR = { kind: 'system', code: 'test', label: 'Test' } as const;
const FUTURE = '2999-01-01T00:00:00.000Z';

/** What every database must do the same with audit events. */
export function eventsSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`events on ${name}`, () => {
    const prepare = async (t: TestContext, count = 0) => {
      const db = await empty(t);
      const organizationId = await ensureOrganization(db, 'acme');
      const add = (type: ImageEvent = 'image_pulled', payload: Record<string, unknown> = {}) =>
        append(db, organizationId, type, payload);
      for (let index = 1; index <= count; index++) await add('image_pulled', { index });
      const sequences = async (filter = {}, page = { before: null as number | null, limit: 100 }) =>
        (await listEvents(db, organizationId, filter, page)).map(({ sequence }) => Number(sequence));
      return { db, organizationId, add, sequences };
    };

    test('old events are removed in parts, and what is left verifies from there, and no further cut is hidden', async (t) => {
      const { db, organizationId, add, sequences } = await prepare(t, 3);
      await age(db, organizationId, 1200);
      const before = '2021-01-01T00:00:00.000Z';
      await pruneEvents(db, before, AbortSignal.abort());
      assert.equal(
        (await sequences({}, { before: null, limit: 5000 })).length,
        1203,
        'nothing when told to stop',
      );
      await pruneEvents(db, before, new AbortController().signal);
      const left = await sequences({}, { before: null, limit: 5000 });
      // One note for each part; the three latest were not old.
      assert.equal(left.length, 6);
      assert.equal((await verifyEvents(db, organizationId)).broken, null);
      await pruneEvents(db, before, new AbortController().signal);
      await add();
      assert.deepEqual((await sequences()).length, 7, 'nothing more is removed, and nothing noted');
      const whole = await verifyEvents(db, organizationId);
      assert.equal(whole.broken, null);

      const [, next] = await listEventsAfter(db, organizationId, 0, 2);
      await db
        .deleteFrom('events')
        .where('organization_id', '=', organizationId)
        .where('sequence', '<=', Number(next?.sequence))
        .execute();
      assert.equal((await verifyEvents(db, organizationId)).broken?.kind, 'missing');
      await db
        .updateTable('organizations')
        .set({ pruned_sequence: Number(next?.sequence), pruned_hash: next?.hash ?? '' })
        .where('id', '=', organizationId)
        .execute();
      assert.match(
        (await verifyEvents(db, organizationId)).broken?.message ?? '',
        /not removed by the server/,
      );
    });

    test('events come newest first, of their own organization alone', async (t) => {
      const { db, sequences } = await prepare(t, 3);
      const other = await ensureOrganization(db, 'other');
      await append(db, other, 'image_pulled', {});
      assert.deepEqual(await sequences(), [3, 2, 1]);
      const [event] = await listEvents(db, other, {}, { before: null, limit: 10 });
      assert.equal(Number(event?.sequence), 1);
      assert.equal(await findEvent(db, await ensureOrganization(db, 'acme'), event?.id ?? ''), undefined);
      assert.deepEqual(await findEvent(db, other, event?.id ?? ''), event);
    });

    test('pages neither skip nor repeat while events arrive', async (t) => {
      const { add, sequences } = await prepare(t, 7);
      const seen: number[] = [];
      for (let before: number | null = null; ;) {
        const page: number[] = await sequences({}, { before, limit: 3 });
        if (page.length === 0) break;
        seen.push(...page);
        before = page.at(-1) ?? null;
        await add();
      }
      assert.deepEqual(seen, [7, 6, 5, 4, 3, 2, 1]);
    });

    test('events are found by type and by time, both ends included', async (t) => {
      const { db, organizationId, add, sequences } = await prepare(t, 2);
      await add('image_removed');
      const rows = await listEventsAfter(db, organizationId, 0, 10);
      const [first, , last] = rows.map(({ timestamp }) => timestamp);
      assert.deepEqual(await sequences({ eventType: 'image_removed' }), [3]);
      assert.deepEqual(await sequences({ eventType: 'snapshot_created' }), []);
      // PostgreSQL cannot parse such text as JSON.
      const sandboxId = '00000000-0000-4000-8000-0000000000aa';
      await add('image_removed', { sandbox_id: sandboxId, error: 'a\0b\ud800"sandbox_id":"' });
      await add('image_pulled', { name: `"sandbox_id":"${sandboxId}"` });
      assert.deepEqual(await sequences({ sandboxId }), [4]);
      assert.deepEqual(await sequences({ sandboxId, eventType: 'image_pulled' }), []);
      // Events of one millisecond have the same time: the fourth may have that of the third.
      const between = await sequences({ since: first, until: last });
      assert.deepEqual(
        between.filter((sequence) => sequence <= 3),
        [3, 2, 1],
      );
      assert.ok((await sequences({ since: last })).includes(3));
      assert.ok((await sequences({ until: first })).includes(1));
      assert.deepEqual(await sequences({ since: FUTURE }), []);
      assert.deepEqual(await sequences({ until: '2000-01-01T00:00:00.000Z' }), []);
      assert.deepEqual(
        await sequences({ eventType: 'image_pulled', since: first }, { before: 2, limit: 9 }),
        [1],
      );
    });

    test('times never go back, also when the clock does', async (t) => {
      const { db, organizationId, add } = await prepare(t);
      await db.updateTable('organizations').set({ event_timestamp: FUTURE }).execute();
      await add();
      const [event] = await listEventsAfter(db, organizationId, 0, 1);
      assert.equal(event?.timestamp, FUTURE);
      assert.equal((await verifyEvents(db, organizationId)).broken, null);
    });

    test('events of many at once form one chain without gaps', async (t) => {
      const { db, organizationId, add, sequences } = await prepare(t);
      await Promise.all(Array.from({ length: 30 }, () => add()));
      assert.deepEqual(
        await sequences(),
        Array.from({ length: 30 }, (_, index) => 30 - index),
      );
      const report = await verifyEvents(db, organizationId);
      assert.equal(report.broken, null);
      assert.equal(report.intact, 30);
    });

    test('an event whose transaction is undone was never there', async (t) => {
      const { db, organizationId, add, sequences } = await prepare(t, 1);
      const failing = db.transaction().execute(async (transaction) => {
        await appendEvent(transaction, newEvent(organizationId, 'image_pulled', {}));
        throw new Error('undone');
      });
      await assert.rejects(failing, /undone/);
      await add();
      assert.deepEqual(await sequences(), [2, 1]);
      assert.equal((await verifyEvents(db, organizationId)).broken, null);
    });

    test('an organization without events has a whole chain', async (t) => {
      const { db, organizationId } = await prepare(t);
      assert.deepEqual(await verifyEvents(db, organizationId), { intact: 0, hash: '', broken: null });
    });

    test('every column of an event that is changed shows', async (t) => {
      const changes = {
        id: '00000000-0000-4000-8000-000000000000',
        category: 'x',
        event_type: 'x',
        actor: '{}',
        payload: '{}',
        request_id: 'x',
        source_address: 'x',
        timestamp: FUTURE,
        previous_hash: 'x',
        hash: 'x',
      };
      const { db, organizationId } = await prepare(t, 3);
      for (const [column, value] of Object.entries(changes)) {
        const [, original] = await listEventsAfter(db, organizationId, 0, 3);
        assert.ok(original);
        const { hash, ...columns } = original;
        await update(db, organizationId, 2, { [column]: value });
        const { intact, broken } = await verifyEvents(db, organizationId);
        assert.deepEqual([intact, broken?.kind, broken?.sequence], [1, 'changed', 2], column);
        await update(db, organizationId, 2, { ...columns, hash });
        assert.equal((await verifyEvents(db, organizationId)).broken, null);
      }
    });

    test('an event that is missing, replaced, put elsewhere, cut off or added shows', async (t) => {
      const missing = await prepare(t, 4);
      await remove(missing.db, missing.organizationId, 2);
      assert.deepEqual(await kindAndPlace(missing), ['missing', 2]);

      const cut = await prepare(t, 4);
      await remove(cut.db, cut.organizationId, 4);
      assert.deepEqual(await kindAndPlace(cut), ['cut', 4]);

      const emptied = await prepare(t, 2);
      await emptied.db.deleteFrom('events').execute();
      assert.deepEqual(await kindAndPlace(emptied), ['cut', 1]);

      const swapped = await prepare(t, 4);
      await update(swapped.db, swapped.organizationId, 2, { sequence: 99 });
      await update(swapped.db, swapped.organizationId, 3, { sequence: 2 });
      await update(swapped.db, swapped.organizationId, 99, { sequence: 3 });
      assert.deepEqual(await kindAndPlace(swapped), ['changed', 2]);
    });

    test('an event that was written anew with a fitting hash does not fit what follows', async (t) => {
      const { db, organizationId, ...rest } = await prepare(t, 3);
      await rewrite(db, organizationId, 2);
      assert.deepEqual(await kindAndPlace({ db, organizationId, ...rest }), ['replaced', 3]);
      await remove(db, organizationId, 3);
      await db.updateTable('organizations').set({ event_sequence: 2 }).execute();
      assert.deepEqual(await kindAndPlace({ db, organizationId, ...rest }), ['replaced', 2]);
    });

    test('events that the organization does not know of show', async (t) => {
      const { db, organizationId, ...rest } = await prepare(t, 3);
      await db.updateTable('organizations').set({ event_sequence: 2 }).execute();
      assert.deepEqual(await kindAndPlace({ db, organizationId, ...rest }), ['added', 3]);
    });

    test('a chain longer than what is read at once is followed to its end', async (t) => {
      const { db, organizationId } = await prepare(t);
      await db.transaction().execute(async (transaction) => {
        for (let index = 0; index < 1001; index++) {
          await appendEvent(transaction, newEvent(organizationId, 'image_pulled', { index }));
        }
      });
      assert.deepEqual((await verifyEvents(db, organizationId)).intact, 1001);
      await update(db, organizationId, 1001, { payload: '{}' });
      assert.deepEqual((await verifyEvents(db, organizationId)).broken?.sequence, 1001);
    });
  });
}

type ImageEvent = 'image_pulled' | 'image_removed';

interface Chain {
  readonly db: Database;
  readonly organizationId: string;
}

async function kindAndPlace({ db, organizationId }: Chain): Promise<readonly unknown[]> {
  const { broken } = await verifyEvents(db, organizationId);
  return [broken?.kind, broken?.sequence];
}

function newEvent(organizationId: string, type: ImageEvent, payload: Record<string, unknown>) {
  return {
    organizationId,
    type,
    category: 'image' as const,
    actor: ACTOR,
    payload,
    requestId: 'r',
    sourceAddress: null,
  };
}

async function append(
  db: Database,
  organizationId: string,
  type: ImageEvent,
  payload: Record<string, unknown>,
) {
  await db
    .transaction()
    .execute((transaction) => appendEvent(transaction, newEvent(organizationId, type, payload)));
}

async function update(
  db: Database,
  organizationId: string,
  sequence: number,
  columns: Readonly<Record<string, unknown>>,
): Promise<void> {
  await db
    .updateTable('events')
    .set(columns)
    .where('organization_id', '=', organizationId)
    .where('sequence', '=', sequence)
    .execute();
}

async function remove(db: Database, organizationId: string, sequence: number): Promise<void> {
  await db
    .deleteFrom('events')
    .where('organization_id', '=', organizationId)
    .where('sequence', '=', sequence)
    .execute();
}

/** As an attacker who can compute the hashes. */
async function rewrite(db: Database, organizationId: string, sequence: number): Promise<void> {
  const [event] = await listEventsAfter(db, organizationId, sequence - 1, 1);
  assert.ok(event);
  const { hash: _hash, ...columns } = { ...event, payload: '{"forged":true}' };
  await update(db, organizationId, sequence, { payload: columns.payload, hash: hashEvent(columns) });
}

/** Puts this many events of 2020 before those that are there, in one chain. */
async function age(db: Database, organizationId: string, count: number): Promise<void> {
  const recent = await listEventsAfter(db, organizationId, 0, 100);
  await db.deleteFrom('events').where('organization_id', '=', organizationId).execute();
  const [model] = recent;
  if (model === undefined) throw new Error('there is nothing to copy');
  const old = Array.from({ length: count }, () => ({
    ...model,
    id: crypto.randomUUID(),
    timestamp: '2020-01-01T00:00:00.000Z',
  }));
  let [hash, sequence] = ['', 0];
  for (const row of [...old, ...recent]) {
    sequence += 1;
    const next = { ...row, sequence, previous_hash: hash };
    hash = hashEvent(next);
    await db
      .insertInto('events')
      .values({ ...next, hash })
      .execute();
  }
  await db
    .updateTable('organizations')
    .set({ event_sequence: sequence, event_hash: hash })
    .where('id', '=', organizationId)
    .execute();
}
