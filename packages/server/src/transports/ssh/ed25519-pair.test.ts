import assert from 'node:assert/strict';
import { test } from 'node:test';
import ssh2 from 'ssh2';
import { makeEd25519Pair } from './ed25519-pair.ts';
import { parsePublicKey } from '../../access/ssh-public-key.ts';

test('every pair can be read, signs, and its signatures are known by its public half', () => {
  // Enough pairs for all byte values in all places, including leading zeros.
  for (let round = 0; round < 1500; round += 1) {
    const { privateKey, publicKey } = makeEd25519Pair();
    const secret = ssh2.utils.parseKey(privateKey);
    const known = ssh2.utils.parseKey(parsePublicKey(publicKey).line);
    assert.ok(!(secret instanceof Error) && !(known instanceof Error));
    const data = Buffer.from(`round ${round}`);
    const verdict: unknown = known.verify(data, secret.sign(data));
    assert.equal(verdict, true, privateKey);
  }
});
