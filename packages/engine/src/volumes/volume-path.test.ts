import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import * as fc from 'fast-check';
import { isTemporaryName, parseEntryPath, parseVolumePath } from './volume-path.ts';

test('the volume itself is the empty path', () => {
  assert.deepEqual(parseVolumePath(''), []);
  assert.throws(() => parseEntryPath(''), PlatformError);
});

test('names may contain anything that a file system takes', () => {
  for (const name of [
    'a b',
    '...',
    '.hidden',
    '-rf',
    'ümläut',
    '💾',
    'new\nline',
    'C:\\x',
    '.svc-tmp-',
    'x'.repeat(255),
  ]) {
    assert.deepEqual(parseEntryPath(`dir/${name}`), ['dir', name]);
  }
});

test('the names of files being written are reserved', () => {
  const name = `.svc-tmp-${'0123456789abcdef'.repeat(2)}`;
  assert.equal(isTemporaryName(name), true);
  assert.throws(() => parseEntryPath(`dir/${name}`), /reserved/);
});

test('every path that is accepted is inside the volume', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('..', '.', '', '/', '\0', 'a', 'x'.repeat(256)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const path = pieces.join('/');
      try {
        const parts = parseVolumePath(path);
        assert.equal(parts.join('/'), path);
        for (const part of parts) {
          assert.ok(part !== '' && part !== '.' && part !== '..' && !/[/\0]/.test(part));
          assert.ok(Buffer.byteLength(part) <= 255);
        }
      } catch (error) {
        assert.ok(PlatformError.is(error, 'invalid_volume_path'), String(error));
      }
    }),
    { numRuns: 1000 },
  );
});
