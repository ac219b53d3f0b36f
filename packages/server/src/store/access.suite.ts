import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import type { Database } from './database.ts';
import { deleteOrganization } from './delete-organization.ts';
import { removeMember } from './members.ts';
import { removeSandbox } from './new-sandbox.ts';
import { putMember } from './organizations.ts';
import { createPreviewToken, findPreview, listPreviewTokens, revokePreviewToken } from './preview-tokens.ts';
import {
  addSshKey,
  findPublicKey,
  findSshAccess,
  listSshKeys,
  removeSshKey,
  touchSshKey,
} from './ssh-keys.ts';
import { addSandbox } from '../testing/stored-sandbox.ts';
import { deleteUser, ensureUser } from './users.ts';

/** Behaviour of SSH keys and preview tokens that is the same on every database. */
export function accessSuite(name: string, empty: (t: TestContext) => Promise<Database>): void {
  describe(`ways into sandboxes on ${name}`, () => {
    const prepare = async (t: TestContext) => {
      const db = await empty(t);
      const spec = { image: { type: 'oci', reference: 'x' } } as const;
      const sandbox = await addSandbox(db, {
        namespace: 'acme',
        name: 'a',
        slug: 'calm-fox',
        spec,
        ports: [],
      });
      const user = await ensureUser(db, 'ada@acme.example');
      await putMember(db, sandbox.organizationId, user.id, 'member');
      const add = (userId: string, fingerprint: string) =>
        addSshKey(db, { userId, name: 'laptop', publicKey: `line of ${fingerprint}`, fingerprint });
      return { db, sandbox, user, add };
    };

    test('a key opens the sandboxes of the organizations of its user, and no others', async (t) => {
      const { db, sandbox, user, add } = await prepare(t);
      const key = await add(user.id, 'SHA256:1');
      assert.ok(key);
      const access = await findSshAccess(db, 'SHA256:1', 'calm-fox');
      assert.deepEqual({ ...access?.key }, { ...key });
      assert.equal(access?.sandbox.id, sandbox.id);
      assert.equal(await findSshAccess(db, 'SHA256:2', 'calm-fox'), undefined);
      assert.equal(await findSshAccess(db, 'SHA256:1', 'no-such'), undefined);
      const another = await ensureUser(db, 'eve@other.example');
      await add(another.id, 'SHA256:3');
      assert.equal(await findSshAccess(db, 'SHA256:3', 'calm-fox'), undefined);
      assert.equal(await findPublicKey(db, 'SHA256:3'), 'line of SHA256:3');
      // Another user who registers the same public key gets no access by it, and the first user keeps theirs.
      await add(another.id, 'SHA256:1');
      assert.equal((await findSshAccess(db, 'SHA256:1', 'calm-fox'))?.key.id, key.id);
      await removeMember(db, sandbox.organizationId, user.id);
      assert.equal(await findSshAccess(db, 'SHA256:1', 'calm-fox'), undefined);
    });

    test('a user has a key once, and removes only their own', async (t) => {
      const { db, user, add } = await prepare(t);
      const key = await add(user.id, 'SHA256:1');
      assert.ok(key);
      assert.equal(await add(user.id, 'SHA256:1'), undefined);
      const other = await ensureUser(db, 'eve@other.example');
      assert.equal(await removeSshKey(db, other.id, key.id), undefined);
      await touchSshKey(db, key);
      const [listed] = await listSshKeys(db, user.id);
      assert.match(listed?.lastUsedAt ?? '', /:00\.000Z$/);
      assert.equal((await removeSshKey(db, user.id, key.id))?.id, key.id);
      assert.equal(await findPublicKey(db, 'SHA256:1'), undefined);
      await add(user.id, 'SHA256:2');
      await deleteUser(db, user.id);
      assert.equal(await findPublicKey(db, 'SHA256:2'), undefined);
    });

    test('a preview token opens one port of one sandbox until it is revoked or expires', async (t) => {
      const { db, sandbox } = await prepare(t);
      const place = { slug: 'calm-fox', port: 3000 };
      const { preview, secret } = await createPreviewToken(db, { sandbox, port: 3000, expiresAt: null });
      assert.equal((await findPreview(db, secret, place))?.sandbox.id, sandbox.id);
      for (const wrong of [
        { ...place, port: 3001 },
        { ...place, slug: 'other' },
      ]) {
        assert.equal(await findPreview(db, secret, wrong), undefined);
      }
      const expiresAt = new Date(Date.now() - 1).toISOString();
      const old = await createPreviewToken(db, { sandbox, port: 3000, expiresAt });
      assert.equal(await findPreview(db, old.secret, place), undefined);
      assert.deepEqual(await listPreviewTokens(db, sandbox.id), [preview]);
      const row = await db.selectFrom('preview_tokens').selectAll().where('id', '=', preview.id).execute();
      assert.ok(!JSON.stringify(row).includes(secret));
      assert.equal(await revokePreviewToken(db, 'another', preview.id), undefined);
      assert.deepEqual(await revokePreviewToken(db, sandbox.id, preview.id), preview);
      assert.equal(await revokePreviewToken(db, sandbox.id, preview.id), undefined);
      assert.equal(await findPreview(db, secret, place), undefined);
    });

    test('nothing opens a sandbox that is removed, or one of an organization that is deleted', async (t) => {
      for (const end of ['sandbox', 'organization']) {
        const { db, sandbox, user, add } = await prepare(t);
        await add(user.id, 'SHA256:1');
        const { secret } = await createPreviewToken(db, { sandbox, port: 3000, expiresAt: null });
        if (end === 'sandbox') await removeSandbox(db, sandbox, null);
        else await deleteOrganization(db, sandbox.organizationId);
        assert.equal(await findSshAccess(db, 'SHA256:1', 'calm-fox'), undefined, end);
        assert.equal(await findPreview(db, secret, { slug: 'calm-fox', port: 3000 }), undefined, end);
      }
    });
  });
}
