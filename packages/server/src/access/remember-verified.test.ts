import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rememberVerified, type Verified } from './remember-verified.ts';
import { signSession, verifySession } from './sessions.ts';
import { signKey, verifyKey } from './signed-keys.ts';

const ONE = new Uint8Array(32).fill(1);
const OTHER = new Uint8Array(32).fill(2);

function counted(until: number | null = null) {
  const asked: string[] = [];
  const verify = rememberVerified((signingKey, token): Promise<Verified<string>> => {
    asked.push(`${signingKey[0]} ${token}`);
    return token === 'bad'
      ? Promise.reject(new Error('bad'))
      : Promise.resolve({ claims: token.toUpperCase(), until });
  });
  return { asked, verify };
}

test('a token is judged once for each signing key, and one that is refused each time', async () => {
  const { asked, verify } = counted();
  for (let time = 0; time < 3; time++) {
    assert.equal(await verify(ONE, 'a'), 'A');
    assert.equal(await verify(OTHER, 'a'), 'A');
    await assert.rejects(verify(ONE, 'bad'), /bad/);
  }
  assert.deepEqual(asked, ['1 a', '2 a', '1 bad', '1 bad', '1 bad']);
});

test('of more tokens than are remembered the oldest are judged again', async () => {
  const { asked, verify } = counted();
  for (let count = 0; count < 5000; count++) await verify(ONE, `t${count}`);
  await verify(ONE, 't4999');
  assert.equal(asked.length, 5000);
  await verify(ONE, 't0');
  assert.equal(asked.length, 5001);
});

test('a key and a session that were good are refused when they have expired', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2030-01-01T00:00:00Z') });
  const expiresAt = new Date(Date.now() + 10_000);
  const key = await signKey(ONE, { namespace: 'a', createdAt: new Date(), expiresAt });
  const session = await signSession(ONE, { id: 's', userId: 'u', expiresAt: expiresAt.toISOString() });
  const use = async () => [await verifyKey(ONE, key), await verifySession(ONE, session)];
  assert.deepEqual(await use(), [{ namespace: 'a' }, 's']);
  t.mock.timers.setTime(expiresAt.getTime() - 1);
  assert.deepEqual(await use(), [{ namespace: 'a' }, 's']);
  t.mock.timers.setTime(expiresAt.getTime() + 1);
  await assert.rejects(verifySession(ONE, session), /exp/);
  // Clocks may differ by five seconds.
  t.mock.timers.setTime(expiresAt.getTime() + 4999);
  assert.deepEqual(await verifyKey(ONE, key), { namespace: 'a' });
  t.mock.timers.setTime(expiresAt.getTime() + 6000);
  await assert.rejects(verifyKey(ONE, key), /Authentication required/);
});
