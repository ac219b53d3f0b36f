import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { PlatformError, type SandboxSpec } from '@svc/contract';
import { claimSandbox, releaseSandbox } from './claims.ts';
import type { Database } from './database.ts';
import { removeSandbox, renameSandbox } from './new-sandbox.ts';
import { listSandboxPage } from './sandbox-pages.ts';
import { findOwnSandbox, updateSandbox, type SandboxRecord } from './sandboxes.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';

const SPEC: SandboxSpec = { image: { type: 'oci', reference: 'x' } };
const isTaken = (field: string) => (error: unknown) =>
  PlatformError.is(error, 'name_already_exists') && error.details?.['field'] === field;

/** Sandboxes as the control plane keeps them, on every database. */
export function sandboxesSuite(
  name: string,
  open: (t: TestContext) => Promise<() => Promise<Database>>,
): void {
  describe(`sandboxes on ${name}`, () => {
    const empty = async (t: TestContext) => await (await open(t))();
    const add = (db: Database, sandbox: string, more: object = {}, namespace = 'default') =>
      addSandbox(db, { namespace, name: sandbox, spec: SPEC, ports: [], isWantedRunning: false, ...more });
    const inTransaction = <T>(db: Database, work: (transaction: Database) => Promise<T>) =>
      db.transaction().execute(work);

    test('makes up slugs that can be said, and refuses one that another sandbox has', async (t) => {
      const db = await empty(t);
      assert.match((await add(db, 'a')).slug, /^[a-z]+-[a-z]+-\d{4}$/);
      await add(db, 'b', { slug: 'taken' });
      await assert.rejects(add(db, 'c', { slug: 'taken' }, 'other'), isTaken('slug'));
    });

    test('renames, and refuses names used in the organization and slugs used in any', async (t) => {
      const db = await empty(t);
      const a = await add(db, 'a');
      await add(db, 'b', { slug: 'theirs' }, 'other');
      await add(db, 'c');
      const renamed = await inTransaction(db, (tx) => renameSandbox(tx, a, { name: 'b', slug: 'mine' }));
      assert.partialDeepStrictEqual(renamed, { name: 'b', slug: 'mine', version: 2 });
      await assert.rejects(
        inTransaction(db, (tx) => renameSandbox(tx, renamed, { name: 'c' })),
        isTaken('name'),
      );
      await assert.rejects(
        inTransaction(db, (tx) => renameSandbox(tx, renamed, { slug: 'theirs' })),
        isTaken('slug'),
      );
    });

    test('gives the name, the slug and the labels of a removed sandbox back', async (t) => {
      const db = await empty(t);
      const spec = { ...SPEC, labels: { team: 'ml' } };
      const before = await add(db, 'a', { slug: 'same', spec });
      await inTransaction(db, (tx) => removeSandbox(tx, before, null));
      const { organizationId } = before;
      const page = { organizationId, labels: { team: 'ml' }, limit: 10, after: null };
      assert.deepEqual(await listSandboxPage(db, page), []);
      assert.equal(await findOwnSandbox(db, organizationId, { id: before.id }), undefined);
      const again = await add(db, 'a', { slug: 'same', spec });
      assert.deepEqual(await listSandboxPage(db, page), [again]);
    });

    test('pages through sandboxes of one moment without losing one', async (t) => {
      const db = await empty(t);
      const labels = { all: 'yes' };
      for (let n = 0; n < 7; n += 1) await add(db, `s${n}`, { spec: { ...SPEC, labels } });
      const created_at = '2026-01-01T00:00:00.000Z';
      await db.updateTable('sandboxes').set({ created_at }).execute();
      await db.updateTable('sandbox_labels').set({ created_at }).execute();
      for (const filter of [{}, labels]) {
        const seen = await readAll(db, filter);
        assert.equal(seen.length, 7);
        assert.deepEqual(
          seen,
          seen.toSorted((a, b) => (a.id < b.id ? 1 : -1)),
        );
      }
    });

    test('refuses a move that is not in the table of moves', async (t) => {
      const db = await empty(t);
      const record = await add(db, 'a');
      await assert.rejects(updateSandbox(db, record, { observed: 'running' }), /from created to running/);
    });

    test('lets one server at a time have a sandbox, and the next when its time is over', async (t) => {
      const db = await empty(t);
      const { id } = await add(db, 'a');
      assert.equal(await claimSandbox(db, id, 'one', 60_000), true);
      assert.equal(await claimSandbox(db, id, 'one', 60_000), true);
      assert.equal(await claimSandbox(db, id, 'two', 60_000), false);
      await releaseSandbox(db, id, 'two');
      assert.equal(await claimSandbox(db, id, 'two', 60_000), false);
      await releaseSandbox(db, id, 'one');
      assert.equal(await claimSandbox(db, id, 'two', -1), true);
      assert.equal(await claimSandbox(db, id, 'one', 60_000), true);
    });

    async function readAll(
      db: Database,
      labels: Readonly<Record<string, string>>,
    ): Promise<readonly SandboxRecord[]> {
      const first = await db.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
      const seen: SandboxRecord[] = [];
      for (;;) {
        const last = seen.at(-1);
        const after = last === undefined ? null : { createdAt: last.createdAt, id: last.id };
        const rows = await listSandboxPage(db, { organizationId: first.id, labels, limit: 2, after });
        seen.push(...rows.slice(0, 2));
        if (rows.length <= 2) return seen;
      }
    }
  });
}
