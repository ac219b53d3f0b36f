import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPassword, isPassword } from './password.ts';

test('a password is known by its hash, however it was typed', async () => {
  const hash = await hashPassword('pass\u00e9');
  assert.equal(await isPassword('passe\u0301', hash), true);
  assert.equal(await isPassword('passe', hash), false);
  assert.notEqual(await hashPassword('pass\u00e9'), hash);
});

test('a user without a password is refused with as much work as one with a password', async () => {
  const hash = await hashPassword('right');
  await isPassword('first', undefined);
  const workOf = async (known: string | undefined) => {
    const before = process.cpuUsage();
    assert.equal(await isPassword('wrong', known), false);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const [knownUs, unknownUs] = [await workOf(hash), await workOf(undefined)];
  assert.ok(unknownUs > knownUs / 4, `${unknownUs} µs of work instead of ${knownUs}`);
});
