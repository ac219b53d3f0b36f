import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { ensureOrganization, findMembership, putMember } from './organizations.ts';
import { findOwnSandbox } from './sandboxes.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { ensureUser, findUser } from './users.ts';

const SPEC = { image: { type: 'oci', reference: 'x' } } as const;

/** What every database must do the same with questions of many callers at once. */
export function lookupsSuite(name: string, open: (t: TestContext) => Promise<Database>): void {
  describe(`lookups on ${name}`, () => {
    test('of many who ask at once each gets their own answer', async (t) => {
      const db = await open(t);
      const [acme, other] = [await ensureOrganization(db, 'acme'), await ensureOrganization(db, 'other')];
      const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
      for (const each of names)
        await addSandbox(db, { namespace: 'acme', name: each, spec: SPEC, ports: [] });
      const find = async (organizationId: string, each: string) =>
        (await findOwnSandbox(db, organizationId, { name: each }))?.name;
      const own = Promise.all(names.map((each) => find(acme, each)));
      const again = Promise.all(names.map((each) => find(acme, each)));
      const foreign = Promise.all(names.map((each) => find(other, each)));
      assert.deepEqual([await own, await again], [names, names]);
      assert.deepEqual(
        await foreign,
        names.map(() => undefined),
      );
    });

    test('a transaction sees its own writes, and other connections do not before its end', async (t) => {
      const db = await open(t);
      const id = await ensureOrganization(db, 'acme');
      const user = await ensureUser(db, 'a@example.com');
      const roleIn = async (place: Database) => (await findMembership(place, 'acme', user.id))?.role;
      await assert.rejects(
        inTransaction(db, async (transaction) => {
          await putMember(transaction, id, user.id, 'admin');
          assert.equal(await roleIn(transaction), 'admin');
          throw new Error('undone');
        }),
        /undone/,
      );
      assert.equal(await roleIn(db), undefined);
      await putMember(db, id, user.id, 'member');
      assert.equal(await roleIn(db), 'member');
    });

    test('a key that no database can hold is not found, and does not fail concurrent lookups', async (t) => {
      const db = await open(t);
      const { id } = await ensureUser(db, 'a@example.com');
      const odd = ['a\0b', '\0', '', "'", '"', '{', '\\', '\uD800', 'ü,"}'];
      const [found, ...others] = await Promise.all([id, ...odd].map((each) => findUser(db, each)));
      assert.equal(found?.id, id);
      assert.ok(others.every((other) => other === undefined));
    });
  });
}
