import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract';
import {
  createApiKey,
  createToken,
  findApiKey,
  findToken,
  listApiKeys,
  listTokens,
  revokeApiKey,
  revokeToken,
  touchCredentials,
} from './api-keys-and-tokens.ts';
import type { Database } from './database.ts';
import { deleteOrganization } from './delete-organization.ts';
import { findInvite, listInvites, putInvite, removeInvite } from './invites.ts';
import { inTransaction } from './in-transaction.ts';
import { lockLivingOrganization } from './lock-organization.ts';
import { findMemberByEmail, hasOtherOwner, listMembers, removeMember } from './members.ts';
import {
  createOrganization,
  ensureOrganization,
  findMembership,
  findOrganization,
  listMemberships,
  putMember,
  requireUnreservedSlug,
  updateOrganization,
} from './organizations.ts';
import { recordKey } from './signed-keys.ts';
import { findRegistryFor, listRegistries, putRegistry, removeRegistry } from './registries.ts';
import { deleteUser, ensureUser, findUser, updateUser } from './users.ts';

const PAST = '2026-01-01T00:00:00.000Z';
const CREDENTIAL = { name: 'ci', createdBy: null, expiresAt: null };
const isTaken = (error: unknown) => PlatformError.is(error, 'name_already_exists');

/** What every database must do the same with organizations, people and their credentials. `open` gives an empty store. */
export function organizationsSuite(name: string, open: (t: TestContext) => Promise<Database>): void {
  describe(`organizations on ${name}`, () => {
    test('a slug is given once, also when it is changed, and many ask at once', async (t) => {
      const db = await open(t);
      const made = await Promise.allSettled(
        Array.from({ length: 5 }, () => createOrganization(db, { slug: 'acme', name: 'Acme' })),
      );
      assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1);
      const other = await createOrganization(db, { slug: 'other', name: 'Other' });
      await assert.rejects(updateOrganization(db, other.id, { slug: 'acme' }), isTaken);
      const renamed = await updateOrganization(db, other.id, { slug: 'third', isMfaRequired: true });
      assert.deepEqual([renamed.slug, renamed.name, renamed.isMfaRequired], ['third', 'Other', true]);
      assert.equal(await findOrganization(db, 'other'), undefined);
    });

    test('only the operator can use the namespaces of the operator', async (t) => {
      const db = await open(t);
      await recordKey(db, 'svc_x', { namespace: 'ci', createdAt: PAST, expiresAt: null });
      await assert.rejects(requireUnreservedSlug(db, 'ci'), isTaken);
      await assert.rejects(requireUnreservedSlug(db, 'default'), isTaken);
      await requireUnreservedSlug(db, 'free');
    });

    test('deleting an organization hides it, ends all access to it and gives its slug back', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const user = await ensureUser(db, 'ann@example.com');
      await putMember(db, id, user.id, 'owner');
      const { secret } = await createApiKey(db, id, CREDENTIAL);
      await putRegistry(db, id, { host: 'ghcr.io', username: 'ann', seal: () => 'sealed' });
      const { token } = await putInvite(db, id, {
        email: 'bob@example.com',
        role: 'member',
        invitedBy: user.id,
      });
      await db.transaction().execute((transaction) => deleteOrganization(transaction, id));
      assert.equal(await findOrganization(db, 'acme'), undefined);
      assert.equal(await findMembership(db, 'acme', user.id), undefined);
      assert.equal(await findApiKey(db, secret), undefined);
      assert.equal(await findInvite(db, token), undefined);
      assert.deepEqual(await listRegistries(db, id), []);
      assert.notEqual(await ensureOrganization(db, 'acme'), id);
    });
  });

  describe(`people on ${name}`, () => {
    test('members come in pages, in the order they joined, each once', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      for (const letter of ['c', 'a', 'b', 'e', 'd']) {
        await putMember(db, id, (await ensureUser(db, `${letter}@example.com`)).id, 'member');
      }
      const seen: string[] = [];
      let after: readonly [string, string] | null = null;
      for (;;) {
        const rows = await listMembers(db, id, { limit: 2, after });
        const page = rows.slice(0, 2);
        seen.push(...page.map(({ email }) => email));
        const last = page.at(-1);
        if (rows.length <= 2 || last === undefined) break;
        after = [last.joinedAt, last.userId];
      }
      assert.equal(seen.length, 5);
      assert.equal(new Set(seen).size, 5);
    });

    test('an owner knows whether there is another one', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const [ann, bob] = await Promise.all(
        ['Ann@Example.com', 'bob@example.com'].map((email) => ensureUser(db, email)),
      );
      assert.ok(ann !== undefined && bob !== undefined);
      await putMember(db, id, ann.id, 'owner');
      await putMember(db, id, bob.id, 'admin');
      assert.equal(await hasOtherOwner(db, id, ann.id), false);
      await putMember(db, id, bob.id, 'owner');
      assert.equal(await hasOtherOwner(db, id, ann.id), true);
      assert.equal((await findMemberByEmail(db, id, 'ANN@example.COM'))?.userId, ann.id);
      await removeMember(db, id, bob.id);
      assert.deepEqual((await listMemberships(db, bob.id)).length, 0);
    });

    test('a second invite to an address replaces the first, and an old one is none', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const invite = { email: 'Bob@example.com', role: 'member', invitedBy: 'x' } as const;
      const first = await putInvite(db, id, invite);
      const second = await putInvite(db, id, { ...invite, role: 'admin' });
      assert.match(first.token, /^[0-9a-f]{64}$/, 'the token cannot be typed as it is');
      assert.equal(await findInvite(db, first.token), undefined);
      assert.deepEqual((await findInvite(db, second.token))?.invite.role, 'admin');
      assert.deepEqual(
        (await listInvites(db, id)).map(({ email }) => email),
        ['bob@example.com'],
      );
      const rows = JSON.stringify(await db.selectFrom('invites').selectAll().execute());
      assert.ok(!rows.includes(second.token));
      await db.updateTable('invites').set({ expires_at: PAST }).execute();
      assert.equal(await findInvite(db, second.token), undefined);
      assert.deepEqual(await listInvites(db, id), []);
      assert.equal((await removeInvite(db, id, second.id))?.id, second.id);
      assert.equal(await removeInvite(db, id, second.id), undefined);
    });

    test('nothing is added any more to an organization that is deleted', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      assert.equal(
        (await inTransaction(db, (transaction) => lockLivingOrganization(transaction, id))).id,
        id,
      );
      await inTransaction(db, (transaction) => deleteOrganization(transaction, id));
      await assert.rejects(
        inTransaction(db, (transaction) => lockLivingOrganization(transaction, id)),
        (error) => PlatformError.is(error, 'org_not_found'),
      );
    });

    test('a deleted user leaves no token and no membership', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const user = await ensureUser(db, 'ann@example.com');
      await putMember(db, id, user.id, 'member');
      const { secret } = await createToken(db, user.id, CREDENTIAL);
      assert.equal((await updateUser(db, user.id, { displayName: 'Ann' })).displayName, 'Ann');
      assert.equal((await updateUser(db, user.id, { displayName: null })).displayName, null);
      await deleteUser(db, user.id);
      assert.equal(await findUser(db, user.id), undefined);
      assert.equal(await findToken(db, secret), undefined);
      assert.deepEqual((await listMembers(db, id, { limit: 10, after: null })).length, 0);
    });
  });

  describe(`credentials on ${name}`, () => {
    test('a key opens its own organization until it is revoked or expires', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const key = await createApiKey(db, id, CREDENTIAL);
      const expired = await createApiKey(db, id, { ...CREDENTIAL, expiresAt: PAST });
      assert.equal((await findApiKey(db, key.secret))?.organization.slug, 'acme');
      assert.equal(await findApiKey(db, expired.secret), undefined);
      assert.equal(await findApiKey(db, `${key.secret}0`), undefined);
      assert.equal(await revokeApiKey(db, 'another', key.id), undefined);
      assert.equal((await revokeApiKey(db, id, key.id))?.id, key.id);
      assert.equal(await revokeApiKey(db, id, key.id), undefined);
      assert.equal(await findApiKey(db, key.secret), undefined);
    });

    test('of a secret only what cannot be used is kept', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const user = await ensureUser(db, 'ann@example.com');
      const key = await createApiKey(db, id, CREDENTIAL);
      const token = await createToken(db, user.id, CREDENTIAL);
      const rows = JSON.stringify([
        await db.selectFrom('api_keys').selectAll().execute(),
        await db.selectFrom('tokens').selectAll().execute(),
      ]);
      for (const { secret } of [key, token]) {
        assert.ok(!rows.includes(secret));
        assert.ok(!rows.includes(secret.slice(0, 24)));
      }
    });

    test('keys are listed newest first, each once, and members see their own', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      for (const createdBy of ['ann', 'bob', 'ann']) await createApiKey(db, id, { ...CREDENTIAL, createdBy });
      const all = await listApiKeys(db, id, { limit: 10, after: null });
      assert.equal(all.length, 3);
      const [first, second] = all;
      assert.ok(first !== undefined && second !== undefined);
      const rest = await listApiKeys(db, id, { limit: 10, after: [second.createdAt, second.id] });
      assert.deepEqual(
        rest.map((key) => key.id),
        [all[2]?.id],
      );
      assert.equal((await listApiKeys(db, id, { limit: 10, after: null }, 'ann')).length, 2);
      assert.equal(
        await revokeApiKey(db, id, first.id, first.createdBy === 'ann' ? 'bob' : 'ann'),
        undefined,
      );
    });

    test('a token is its user’s, and the time of its last use is noted', async (t) => {
      const db = await open(t);
      const user = await ensureUser(db, 'ann@example.com');
      const token = await createToken(db, user.id, CREDENTIAL);
      assert.equal((await findToken(db, token.secret))?.lastUsedAt, null);
      await touchCredentials(db, 'tokens', [token.id], PAST);
      assert.equal((await listTokens(db, user.id))[0]?.lastUsedAt, PAST);
      assert.equal(await revokeToken(db, 'another', token.id), undefined);
      assert.equal((await revokeToken(db, user.id, token.id))?.id, token.id);
      assert.equal(await findToken(db, token.secret), undefined);
    });

    test('a registry has one password per organization, under all its names', async (t) => {
      const db = await open(t);
      const { id } = await createOrganization(db, { slug: 'acme', name: 'Acme' });
      const put = (host: string, password: string) =>
        putRegistry(db, id, { host, username: 'ann', seal: (of) => `${of} ${password}` });
      const first = await put('index.docker.io', 'one');
      const second = await put('https://registry-1.docker.io/v2/', 'two');
      assert.equal(first.id, second.id);
      assert.equal(second.sealedPassword, `${first.id} two`);
      assert.equal((await findRegistryFor(db, id, 'docker.io'))?.id, first.id);
      assert.equal(await findRegistryFor(db, 'another', 'docker.io'), undefined);
      assert.equal(await findRegistryFor(db, id, 'ghcr.io'), undefined);
      assert.equal((await removeRegistry(db, id, first.id))?.id, first.id);
      assert.equal(await removeRegistry(db, id, first.id), undefined);
    });
  });
}
