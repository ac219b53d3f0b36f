import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import ssh2 from 'ssh2';
import { PlatformError } from '@svc/contract';
import { makeEd25519Pair } from '../transports/ssh/ed25519-pair.ts';
import { parsePublicKey } from './ssh-public-key.ts';

// Made with ssh-keygen, which also showed the fingerprint.
const KNOWN = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOvwFpajiI+23NG+zkM6rOoPYmA5EQSWHIDdZg/RHXQy a comment';
const KNOWN_FINGERPRINT = 'SHA256:DLamlLWojYbUZmp8ytpyafaLhyb/ShcWao0wKD/CcaM';

test('keys of every kind that OpenSSH makes are read, and their comment is dropped', () => {
  const made = [
    { public: makeEd25519Pair().publicKey },
    ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }),
    ssh2.utils.generateKeyPairSync('ecdsa', { bits: 384 }),
    ssh2.utils.generateKeyPairSync('ecdsa', { bits: 521 }),
    ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 }),
  ];
  for (const { public: line } of made) {
    const { line: kept, fingerprint } = parsePublicKey(`  ${line.trim()} me@home\n`);
    assert.equal(kept, line.trim().split(' ').slice(0, 2).join(' '));
    assert.match(fingerprint, /^SHA256:[A-Za-z0-9+/]{43}$/);
  }
});

test('a fingerprint is the one that ssh-keygen shows', () => {
  assert.equal(parsePublicKey(KNOWN).fingerprint, KNOWN_FINGERPRINT);
});

test('an invalid, weak or private key is refused with a reason', () => {
  const refused: readonly (readonly [string, RegExp])[] = [
    ['', /one line/],
    ['ssh-dss AAAA', /one line/],
    ['__proto__ AAAA', /one line/],
    ['ssh-ed25519', /cut off/],
    ['ssh-ed25519 AAAA', /cut off/],
    [`${KNOWN}\n${KNOWN}`, /one line/],
    [KNOWN.replace('ssh-ed25519', 'ssh-rsa'), /another type/],
    [ssh2.utils.generateKeyPairSync('rsa', { bits: 1024 }).public, /2048/],
    [makeEd25519Pair().privateKey, /private key/],
  ];
  for (const [text, reason] of refused) {
    assert.throws(
      () => parsePublicKey(text),
      (error: unknown) => PlatformError.is(error, 'invalid_request') && reason.test(error.message),
      text.slice(0, 40),
    );
  }
});

test('arbitrary bytes parse as a key or are refused', () => {
  const types = ['ssh-ed25519', 'ssh-rsa', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp521'];
  const property = fc.property(
    fc.constantFrom(...types),
    fc.uint8Array({ maxLength: 200 }),
    (type, bytes) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(type.length);
      const blob = Buffer.concat([length, Buffer.from(type), bytes]);
      try {
        parsePublicKey(`${type} ${blob.toString('base64')}`);
      } catch (error) {
        assert.ok(PlatformError.is(error, 'invalid_request'));
      }
    },
  );
  fc.assert(property, { numRuns: 300 });
});
