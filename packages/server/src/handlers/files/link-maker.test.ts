import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTenants } from '../../testing/tenants.ts';

test('a link ends with the key that made it, and with the membership of its user', async (t) => {
  const tenants = await createTenants();
  t.after(() => tenants.close());
  const { victim } = tenants;
  const sandbox = victim.ids['sandbox_id'] ?? '';
  const keys = `/orgs/${victim.slug}/api-keys`;
  const body = { path: '/etc/hosts', method: 'GET' };
  const link = async (path: string, key: string) => {
    const made = await tenants.send('POST', path, { key, body });
    assert.equal(made.status, 200, made.text);
    return (JSON.parse(made.text) as { readonly address: string }).address.replace(/^\/v1/, '');
  };
  const codeOf = async (address: string) => {
    const { text } = await tenants.send('GET', address, {});
    return (JSON.parse(text) as { readonly error: { readonly code: string; readonly message: string } })
      .error;
  };
  const made = await tenants.send('POST', keys, { key: victim.ownerToken, body: { name: 'for links' } });
  const { id, key } = JSON.parse(made.text) as { readonly id: string; readonly key: string };
  const byKey = await link(`/sandboxes/${sandbox}/files/links`, key);
  const byMember = await link(`/orgs/${victim.slug}/sandboxes/${sandbox}/files/links`, victim.memberToken);
  for (const address of [byKey, byMember]) assert.equal((await codeOf(address)).code, 'sandbox_not_running');
  await tenants.send('DELETE', `${keys}/${id}`, { key: victim.ownerToken });
  const members = await tenants.send('GET', `/orgs/${victim.slug}/members`, { key: victim.ownerToken });
  const { data } = JSON.parse(members.text) as {
    readonly data: readonly { readonly user_id: string; readonly role: string }[];
  };
  const member = data.find(({ role }) => role === 'member');
  await tenants.send('DELETE', `/orgs/${victim.slug}/members/${member?.user_id}`, { key: victim.ownerToken });
  const [revoked, left] = [await codeOf(byKey), await codeOf(byMember)];
  assert.deepEqual([revoked.code, left.code], ['forbidden', 'forbidden']);
  assert.match(revoked.message, /was revoked/);
});
