import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { signSession } from '../../access/sessions.ts';
import { ensureOrganization, putMember } from '../../store/organizations.ts';
import { createSession, endSessions } from '../../store/sessions.ts';
import { ensureUser } from '../../store/users.ts';
import { startChannelServer } from '../../testing/channel-server.ts';
import { openChannel, refusalOf } from '../../testing/channel.ts';

/** A member of `acme` with a session, as a browser on this machine has it. */
async function startWithSession(t: TestContext) {
  const server = await startChannelServer(t);
  const { url, sandboxId } = await server.addSandbox({ organization: 'acme' });
  const { id: userId } = await ensureUser(server.database, 'ann@example.com');
  await putMember(server.database, await ensureOrganization(server.database, 'acme'), userId, 'member');
  const expiresAt = new Date(Date.now() + 60_000).toISOString();
  const asked = {
    userId,
    organizationId: null,
    hasSecondFactor: false,
    userAgent: '',
    sourceAddress: null,
    expiresAt,
  };
  const session = await createSession(server.database, asked);
  // The key of the server of this test.
  const cookie = `__Host-svc_session=${await signSession(new Uint8Array(32), session)}`;
  return { server, userId, cookie, address: { url, sandboxId, prefix: '/orgs/acme' } };
}

test('a page of this server opens a channel with its session', async (t) => {
  const { address, cookie } = await startWithSession(t);
  const { channel } = await openChannel(t, { ...address, headers: { cookie, origin: address.url } });
  assert.equal((await channel.run({ cmd: 'true' })).code, 0);
});

test('no page of another origin does, nor a request without an origin', async (t) => {
  const { address, cookie } = await startWithSession(t);
  for (const origin of [undefined, 'http://evil.example', 'http://127.0.0.1:1', 'null']) {
    const headers = { cookie, ...(origin === undefined ? {} : { origin }) };
    const { status, body } = await refusalOf({ ...address, headers });
    assert.deepEqual([status, body.error.code], [403, 'forbidden'], origin);
  }
});

test('a session that has ended opens nothing, and neither does one on an address without an organization', async (t) => {
  const { server, userId, address, cookie } = await startWithSession(t);
  const headers = { cookie, origin: address.url };
  assert.equal((await refusalOf({ ...address, prefix: '', headers })).status, 401);
  await endSessions(server.database, userId);
  assert.equal((await refusalOf({ ...address, headers })).status, 401);
});
