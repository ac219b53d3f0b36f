import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PlatformError } from '../errors.ts';
import { checkEntryPath, checkVolumePath, decodeVolumePath, encodeVolumePath } from './volume-path.ts';

const refuses = (work: () => unknown, reason: RegExp) =>
  assert.throws(work, (error) => {
    assert.ok(PlatformError.is(error, 'invalid_volume_path'), String(error));
    assert.equal(error.details?.['field'], 'path');
    assert.match(error.message, reason);
    return true;
  });

test('every clean path comes back from its header, which is ASCII without padding', () => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
    .filter((text) => !/[/\0]/.test(text) && text !== '.' && text !== '..');
  fc.assert(
    fc.property(fc.array(name, { maxLength: 5 }), (names) => {
      const path = names.join('/');
      const header = encodeVolumePath(path);
      assert.match(header, /^[A-Za-z0-9_-]*$/);
      assert.equal(header, Buffer.from(path).toString('base64url'));
      assert.equal(decodeVolumePath(header, 'path'), path);
      const padded = header.padEnd(Math.ceil(header.length / 4) * 4, '=');
      assert.equal(decodeVolumePath(padded, 'path'), path);
    }),
  );
});

test('no header makes it throw anything but a refusal, and what it accepts is clean', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.base64String(),
        fc.string(),
        fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64url')),
      ),
      (header) => {
        try {
          const path = decodeVolumePath(header, 'path');
          assert.ok(path === '' || path.split('/').every((name) => !['', '.', '..'].includes(name)));
          assert.ok(!path.startsWith('/') && !path.includes('\0'));
        } catch (error) {
          assert.ok(PlatformError.is(error, 'invalid_volume_path'), String(error));
        }
      },
    ),
  );
});

test('a byte order mark is a part of the name', () => {
  assert.equal(decodeVolumePath(encodeVolumePath('\u{feff}a'), 'path'), '\u{feff}a');
});

test('malformed paths are refused with the reason', () => {
  const check = (path: string) => () => checkVolumePath(path, 'path');
  refuses(check('/etc'), /absolute/);
  refuses(check('a/../b'), /contains \.\./);
  refuses(check('./a'), /contains \./);
  refuses(check('a//b'), /empty part/);
  refuses(check('a/'), /empty part/);
  refuses(check('a\0'), /NUL/);
  refuses(check('\ud800'), /UTF-8/);
  refuses(check('é'.repeat(128)), /255 bytes/);
  refuses(check('a/'.repeat(2048) + 'b'), /4096 bytes/);
  refuses(() => checkEntryPath('', 'path'), /is empty/);
  refuses(() => decodeVolumePath('a', 'path'), /base64/);
  refuses(() => decodeVolumePath('_w', 'path'), /UTF-8/);
  assert.equal(checkVolumePath('', 'path'), '');
  assert.equal(checkVolumePath('...', 'path'), '...');
});
