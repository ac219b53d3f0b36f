import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract';
import fc from 'fast-check';
import { SignJWT, UnsecuredJWT } from 'jose';
import { makeFolder } from '../testing/test-server.ts';
import { parseDurationMs } from './duration.ts';
import { signKey, verifyKey } from './signed-keys.ts';
import { ensureSigningKey, resetSigningKey } from './signing-key.ts';

const SECRET = randomBytes(32);
const isRefused = (error: unknown) => PlatformError.is(error, 'invalid_api_key');
const claims = { namespace: '*', createdAt: new Date(), expiresAt: null };

test('a key is svc_ and a JWT whose claims are iat and namespace, and exp only when it expires', async () => {
  const key = await signKey(SECRET, claims);
  assert.match(key, /^svc_eyJ/);
  assert.deepEqual(Object.keys(payloadOf(key)).toSorted(), ['iat', 'namespace']);
  const expiring = await signKey(SECRET, { ...claims, expiresAt: new Date(Date.now() + 60_000) });
  assert.deepEqual(Object.keys(payloadOf(expiring)).toSorted(), ['exp', 'iat', 'namespace']);
});

test('a key is worth what its namespace says', async () => {
  assert.deepEqual(await verifyKey(SECRET, await signKey(SECRET, claims)), { namespace: '*' });
  const scoped = await signKey(SECRET, { ...claims, namespace: 'team-1' });
  assert.deepEqual(await verifyKey(SECRET, scoped), { namespace: 'team-1' });
});

test('a key of another server, without the prefix, changed, or empty is refused', async () => {
  const key = await signKey(SECRET, claims);
  await assert.rejects(verifyKey(randomBytes(32), key), isRefused);
  await assert.rejects(verifyKey(SECRET, key.slice('svc_'.length)), isRefused);
  await assert.rejects(verifyKey(SECRET, `${key}x`), isRefused);
  await assert.rejects(verifyKey(SECRET, 'svc_'), isRefused);
  const [head, , signature] = key.split('.');
  const body = Buffer.from(JSON.stringify({ namespace: '*', iat: 1, admin: true })).toString('base64url');
  await assert.rejects(verifyKey(SECRET, `${head}.${body}.${signature}`), isRefused);
});

test('a key signed in another way is refused: no signature, another algorithm, no or a bad namespace', async () => {
  const unsigned = new UnsecuredJWT({ namespace: '*' }).encode();
  await assert.rejects(verifyKey(SECRET, `svc_${unsigned}`), isRefused);
  const sign = async (payload: Record<string, unknown>, alg: string) =>
    `svc_${await new SignJWT(payload).setProtectedHeader({ alg }).sign(SECRET)}`;
  await assert.rejects(verifyKey(SECRET, await sign({ namespace: '*' }, 'HS512')), isRefused);
  await assert.rejects(verifyKey(SECRET, await sign({}, 'HS256')), isRefused);
  await assert.rejects(verifyKey(SECRET, await sign({ namespace: 7 }, 'HS256')), isRefused);
  await assert.rejects(verifyKey(SECRET, await sign({ namespace: '../x' }, 'HS256')), isRefused);
});

test('a key is good until it expires, and for 5 seconds of clock difference beyond', async (t) => {
  // The clock is fixed, so a machine that pauses does not change the messages.
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() });
  const expiresIn = (ms: number) => signKey(SECRET, { ...claims, expiresAt: new Date(Date.now() + ms) });
  await verifyKey(SECRET, await expiresIn(60_000));
  await verifyKey(SECRET, await expiresIn(-2000));
  await assert.rejects(verifyKey(SECRET, await expiresIn(-10_000)), (error) => {
    assert.ok(PlatformError.is(error, 'invalid_api_key'));
    assert.equal(error.details?.['reason'], 'expired');
    return true;
  });
});

test('no text is a key by chance', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
      await assert.rejects(verifyKey(SECRET, `svc_${text}`), isRefused);
    }),
  );
});

test('the signing key is 32 random bytes in a file of mode 0600, made once and by one of many', async (t) => {
  const folder = await makeFolder(t);
  const keys = await Promise.all(Array.from({ length: 8 }, () => ensureSigningKey(folder)));
  for (const key of keys) assert.deepEqual(key, keys[0]);
  assert.equal(keys[0]?.length, 32);
  const path = join(folder, 'signing.key');
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(folder), ['signing.key']);
});

test('resetting the signing key makes every earlier key worthless', async (t) => {
  const folder = await makeFolder(t);
  const key = await signKey(await ensureSigningKey(folder), claims);
  const fresh = await resetSigningKey(folder);
  await assert.rejects(verifyKey(fresh, key), isRefused);
  assert.deepEqual(await ensureSigningKey(folder), fresh);
  assert.equal((await stat(join(folder, 'signing.key'))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(folder), ['signing.key']);
});

test('a damaged signing key is reported with the way out, and not replaced in silence', async (t) => {
  const folder = await makeFolder(t);
  const path = join(folder, 'signing.key');
  await writeFile(path, 'short');
  await chmod(path, 0o600);
  await assert.rejects(ensureSigningKey(folder), /--reset-key/);
  assert.equal(await readFile(path, 'utf8'), 'short');
});

test('a duration is a number and one of seven units', () => {
  const second = 1000;
  assert.equal(parseDurationMs('1s'), second);
  assert.equal(parseDurationMs('2m'), 2 * 60 * second);
  assert.equal(parseDurationMs('3h'), 3 * 3600 * second);
  assert.equal(parseDurationMs('4d'), 4 * 86_400 * second);
  assert.equal(parseDurationMs('5w'), 5 * 7 * 86_400 * second);
  assert.equal(parseDurationMs('6mo'), 6 * 30 * 86_400 * second);
  assert.equal(parseDurationMs('7y'), 7 * 365 * 86_400 * second);
  for (const text of ['', '5', 's', '0s', '-1d', '1.5h', '1 d', '1M', '1dd']) {
    assert.throws(
      () => parseDurationMs(text),
      /s seconds, m minutes, h hours, d days, w weeks, mo months, y years/,
      text,
    );
  }
  for (const text of ['999999999999y', '99999y', '8000y', '999999999999s'])
    assert.throws(() => parseDurationMs(text), /is after the year 9999: give a shorter time/, text);
});

function payloadOf(key: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(key.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}
